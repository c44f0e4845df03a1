"""Refusals of memory classes, memory policies and limits of misc resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import InputError, NodeSet, PolicyError

_SHOWN: Final = 80  # characters, enough to recognize a value


@dataclass(eq=False)
class BadMemoryAnnotation(InputError):
    """An annotation about memory is invalid."""

    key: str
    value: str
    why: str

    def __str__(self) -> str:
        shown = self.value if len(self.value) <= _SHOWN else f"{self.value[:_SHOWN]}..."
        return f"annotation {self.key}: {shown!r} {self.why}"


@dataclass(eq=False)
class UnknownMemoryClass(PolicyError):
    """A container asks for a class that does not exist."""

    title: str
    kind: str
    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = f"known: {', '.join(self.known)}" if self.known else "none is defined"
        return (
            f"{self.title} asks for {self.kind} class {self.name!r}; {known}; "
            "to help, name one of these, or add the class to the configuration"
        )


@dataclass(eq=False)
class MemoryFileNotAllowed(PolicyError):
    """A container sets a cgroup file that the configuration does not allow."""

    title: str
    file: str
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        allowed = f"allowed: {', '.join(self.allowed)}" if self.allowed else "none is"
        return (
            f"{self.title} sets {self.file} by annotation, which is not allowed; "
            f"{allowed}; to help, add it to unifiedAnnotations of the configuration"
        )


@dataclass(eq=False)
class NoMemoryLimit(PolicyError):
    """A class needs a memory limit that the container does not have."""

    title: str
    name: str
    share: str

    def __str__(self) -> str:
        return (
            f"{self.title} is in memory QoS class {self.name!r}, whose memory.high "
            f"is its memory limit less {self.share}, and it has no memory limit; to "
            "help, set one, or put it into no class by an empty annotation"
        )


@dataclass(eq=False)
class NoSuchNodes(PolicyError):
    """A memory policy means nodes that the machine or the container does not have.

    Attributes:
        nodes: The nodes as written.
        meant: The nodes that this means here.
    """

    title: str
    nodes: str
    meant: NodeSet
    why: str

    def __str__(self) -> str:
        return (
            f"{self.title}: nodes {self.nodes!r} of its memory policy mean "
            f"{self.meant or 'none'} here: {self.why}"
        )


@dataclass(eq=False)
class UnknownMiscResource(PolicyError):
    """A limit is for a resource that the kernel does not count."""

    title: str
    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = ", ".join(self.known) or "nothing"
        return (
            f"{self.title} limits {self.name} in misc.max; this machine counts "
            f"{known} (misc.capacity); to help, remove the annotation"
        )
