"""Why the configuration of a runtime is left as it is, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values.errors import InputError


@dataclass(eq=False)
class NotToml(InputError):
    """A file is not TOML, so that the runtime would not start with it."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} is not TOML: {self.why}; mend it first"


@dataclass(eq=False)
class NotEditable(InputError):
    """A file is written in a way that is not safe to edit."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; edit it by hand"


@dataclass(eq=False)
class UnknownVersion(InputError):
    """A file of containerd has a version whose tables are not known here."""

    path: str
    version: object

    def __str__(self) -> str:
        if type(self.version) is int and self.version in (0, 1):
            return (
                f"{self.path} has version 1, which has no table for NRI; convert it "
                "with `containerd config migrate` first"
            )
        return f"{self.path} has version {self.version!r}; only 2, 3 and 4 are known"


@dataclass(eq=False)
class NoMainFile(InputError):
    """There are drop-ins for containerd, and no first file that imports them."""

    path: str
    drop_in: str

    def __str__(self) -> str:
        return (
            f"{self.path} is missing, so that only containerd 2.2 and later read "
            f"{self.drop_in}; write it first: containerd config default >{self.path}"
        )


@dataclass(eq=False)
class SwitchedOff(InputError):
    """A plugin of containerd is disabled as a whole that NRI needs."""

    path: str
    plugin: str

    def __str__(self) -> str:
        return (
            f"{self.path} has {self.plugin!r} in disabled_plugins, and NRI needs it; "
            "remove it there first"
        )


@dataclass(eq=False)
class Overridden(InputError):
    """A file that is read later, and is not ours, says otherwise."""

    path: str
    table: str

    def __str__(self) -> str:
        return (
            f"{self.path} has [{self.table}] and goes before whatever we write; "
            "change it there"
        )


@dataclass(eq=False)
class Generated(InputError):
    """A file is written anew by another program, which would undo every change."""

    path: str
    mark: str

    def __str__(self) -> str:
        return f"{self.path} says {self.mark!r}; change what it is made from"


@dataclass(eq=False)
class ForeignFile(InputError):
    """A file has the name of our drop-in, but other contents than we write."""

    path: str

    def __str__(self) -> str:
        return f"{self.path} is not as this command writes it; move it away"


@dataclass(eq=False)
class ChangedSince(InputError):
    """A file was changed after us, so that to restore the old one would lose that."""

    path: str
    backup: str

    def __str__(self) -> str:
        return (
            f"{self.path} was changed after NRI was switched on in it; the original "
            f"is {self.backup}: merge them by hand"
        )
