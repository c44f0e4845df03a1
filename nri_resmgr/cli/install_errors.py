"""Why a plugin cannot be installed or removed, by who can act."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.values.errors import HostError, InputError


@dataclass(eq=False)
class NoSuchPlugin(InputError):
    """There is no program of that name or path."""

    plugin: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"no plugin {self.plugin!r}: give the path of a Python file, of a folder "
            f"with __main__.py, or one of {', '.join(self.known) or 'nothing shipped'}"
        )


@dataclass(eq=False)
class AlreadyInstalled(InputError):
    """A launcher of that name is in the folder."""

    path: Path

    def __str__(self) -> str:
        return f"{self.path} exists: uninstall it first, or choose another name"


@dataclass(eq=False)
class NotInstalled(InputError):
    """Nothing of ours has that name."""

    plugin: str
    folder: Path

    def __str__(self) -> str:
        return f"no plugin {self.plugin!r} that nri-resmgr installed in {self.folder}"


@dataclass(eq=False)
class WouldBreakRuntime(HostError):
    """The plugin folder holds executables at which NRI refuses to start."""

    paths: tuple[Path, ...]

    def __str__(self) -> str:
        names = ", ".join(str(path) for path in self.paths)
        return (
            f"{names}: an executable without an NN-name makes the runtime's NRI, and "
            "with it the runtime, fail to start; remove it or its x bits first"
        )


@dataclass(eq=False)
class FolderUnusable(HostError):
    """A folder or file of the installation cannot be written."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.why.lower()}; is this process root?"
