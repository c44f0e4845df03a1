"""What can go wrong with resctrl, with what would help."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import HostError


@dataclass(eq=False)
class ResctrlNotMounted(HostError):
    """There is no resctrl file system."""

    table: str = "/proc/mounts"

    def __str__(self) -> str:
        return (
            f"{self.table} has no resctrl; where the CPU has RDT, "
            "mount -t resctrl resctrl /sys/fs/resctrl"
        )


@dataclass(eq=False)
class ResctrlLocked(HostError):
    """Another program does not let go of the lock."""

    path: str

    def __str__(self) -> str:
        return f"{self.path} is locked by another program; see lslocks"


@dataclass(eq=False)
class TooManyGroups(HostError):
    """The hardware has fewer classes of service than the configuration wants."""

    wanted: tuple[str, ...]
    others: tuple[str, ...]
    limit: int

    def __str__(self) -> str:
        others = f", {len(self.others)} of others ({', '.join(self.others)})"
        return (
            f"{len(self.wanted)} RDT classes ({', '.join(self.wanted)})"
            f"{others if self.others else ''} and the root group need "
            f"{len(self.wanted) + len(self.others) + 1} closids, this machine has "
            f"{self.limit}; have fewer classes"
            f"{', or remove groups that nobody needs' if self.others else ''}"
        )


@dataclass(eq=False)
class ForeignGroup(HostError):
    """A class has the name of a group that another program made for something else."""

    name: str
    path: str
    wanted: str
    present: str

    def __str__(self) -> str:
        return (
            f"RDT class {self.name!r} is to have {_line(self.wanted)}, but {self.path} "
            f"is there, not made by us, and has {_line(self.present)}; rename the "
            "class, remove the group, or allow to adopt it"
        )


@dataclass(eq=False)
class GroupInUse(HostError):
    """A class is no longer configured, and something runs in it."""

    name: str
    path: str
    tasks: int

    def __str__(self) -> str:
        return (
            f"RDT class {self.name!r} is no longer wanted, but {self.path}/tasks has "
            f"{self.tasks}; stop them, or force it: they fall to the root group"
        )


@dataclass(eq=False)
class ExclusiveOverlap(HostError):
    """A class would share bits with a group that shares with nobody."""

    name: str
    path: str
    resource: str
    cache: int
    other: str

    def __str__(self) -> str:
        return (
            f"RDT class {self.name!r}: {self.path} would have bits of "
            f"{self.resource} id {self.cache} that {self.other!r} must not share; "
            "see the mode files of both"
        )


@dataclass(eq=False)
class BadGroupName(HostError):
    """No folder can have this name."""

    name: str

    def __str__(self) -> str:
        return f"RDT class or monitoring group {self.name!r}: no name for a folder"


@dataclass(eq=False)
class GroupRefused(HostError):
    """The kernel refused a change of a group.

    Attributes:
        name: The class.
        path: The file or folder.
        what: What was to be done.
        why: The kernel's own sentence, or that of errno.
        left: What could not be put back to what it was before.
    """

    name: str
    path: str
    what: str
    why: str
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        left = f"; not put back: {', '.join(self.left)}" if self.left else ""
        return (
            f"RDT class {self.name!r}: cannot {self.what} {self.path}: {self.why}{left}"
        )


@dataclass(eq=False)
class UnknownGroup(HostError):
    """There is no such class, or no such monitoring group in it."""

    name: str
    path: str

    def __str__(self) -> str:
        return f"RDT class {self.name!r}: there is no {self.path}"


def _line(text: str) -> str:
    return " ".join(text.split()) or "nothing"
