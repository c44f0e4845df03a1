"""Reasons for not changing the configuration of a runtime, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values.errors import InputError


@dataclass(eq=False)
class NotToml(InputError):
    """A file is not TOML; the runtime would not start with it."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} is not TOML: {self.why}; fix it first"


@dataclass(eq=False)
class NotEditable(InputError):
    """A file has a form that is not safe to edit."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; edit it by hand"


@dataclass(eq=False)
class NotChanged(InputError):
    """A file has to be changed by other means first, or instead.

    Attributes:
        why: The rest of the sentence, with what helps.
    """

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} {self.why}"


@dataclass(eq=False)
class Overridden(InputError):
    """A file of the operator that is read later has other values."""

    path: str
    table: str

    def __str__(self) -> str:
        return (
            f"{self.path} has [{self.table}], which overrides a drop-in; "
            "change it there"
        )


@dataclass(eq=False)
class ForeignFile(InputError):
    """A file has the name of our drop-in, but other contents."""

    path: str

    def __str__(self) -> str:
        return f"{self.path} was not written by this command; move it away"
