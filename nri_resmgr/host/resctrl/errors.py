"""Errors of resctrl; their texts say what would help."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import HostError


@dataclass(eq=False)
class ResctrlNotMounted(HostError):
    """resctrl is not mounted."""

    table: str = "/proc/mounts"

    def __str__(self) -> str:
        return (
            f"{self.table}: resctrl is not mounted; if the CPU has RDT, run "
            "mount -t resctrl resctrl /sys/fs/resctrl"
        )


@dataclass(eq=False)
class ResctrlLocked(HostError):
    """Another program holds the lock."""

    path: str

    def __str__(self) -> str:
        return f"{self.path} is locked by another program; find it with lslocks"


@dataclass(eq=False)
class TooManyGroups(HostError):
    """The hardware has fewer closids than the configuration needs."""

    wanted: tuple[str, ...]
    others: tuple[str, ...]
    limit: int

    def __str__(self) -> str:
        others = f", groups of other programs ({', '.join(self.others)})"
        return (
            f"{len(self.wanted)} RDT classes ({', '.join(self.wanted)})"
            f"{others if self.others else ''} and the root group need "
            f"{len(self.wanted) + len(self.others) + 1} closids, this machine has "
            f"{self.limit}; configure fewer classes"
            f"{', or remove unused groups' if self.others else ''}"
        )


@dataclass(eq=False)
class ForeignGroup(HostError):
    """A class has the name of another program's group with other schemata."""

    name: str
    path: str
    wanted: str
    present: str

    def __str__(self) -> str:
        return (
            f"RDT class {self.name!r} needs {_line(self.wanted)}, but {self.path} "
            f"exists, was made by another program, and has {_line(self.present)}; "
            "rename the class, remove the group, or set adoptGroups: true"
        )


@dataclass(eq=False)
class GroupInUse(HostError):
    """A class is no longer configured, but has threads."""

    name: str
    path: str
    tasks: int

    def __str__(self) -> str:
        return (
            f"RDT class {self.name!r} is no longer configured, but still has threads "
            f"({self.tasks} in {self.path}/tasks); stop them, or set force: true to "
            "move them to the root group"
        )


@dataclass(eq=False)
class ExclusiveOverlap(HostError):
    """A class would have bits of an exclusive group."""

    name: str
    path: str
    resource: str
    cache: int
    other: str

    def __str__(self) -> str:
        return (
            f"RDT class {self.name!r}: {self.path} would have bits of "
            f"{self.resource} id {self.cache} that {self.other!r} has as well, and one "
            "of the two is exclusive or locked (file mode); give them separate bits"
        )


@dataclass(eq=False)
class BadGroupName(HostError):
    """A name is not valid for a folder."""

    name: str

    def __str__(self) -> str:
        return f"RDT class or monitoring group {self.name!r}: not a valid folder name"


@dataclass(eq=False)
class GroupRefused(HostError):
    """The kernel rejected a change of a group.

    Attributes:
        why: The kernel's reason, of ``last_cmd_status`` or errno.
        left: Paths of earlier changes that could not be undone.
    """

    name: str
    path: str
    what: str
    why: str
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        left = f"; not undone: {', '.join(self.left)}" if self.left else ""
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
