"""Refusals of block I/O classes."""

from __future__ import annotations

from nri_resmgr.values import PolicyError
from nri_resmgr.values.error_fields import with_fields


@with_fields
class UnknownBlockIoClass(PolicyError):
    """A container asks for a class that nobody wrote.

    Attributes:
        title: The container, for people.
        name: The class that it asks for.
        known: The names of all classes.
    """

    title: str
    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = f"known: {', '.join(self.known)}" if self.known else "none is defined"
        return (
            f"{self.title} asks for block I/O class {self.name!r}; {known}; "
            "to help, name one of these, or add the class to the configuration"
        )
