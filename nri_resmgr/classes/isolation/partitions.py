"""Partitions of cgroup v2: CPUs that the kernel keeps all other processes off.

A *remote* partition may be anywhere in the tree, since Linux 6.7. Each cgroup above it
has to have its CPUs in ``cpuset.cpus.exclusive``, which by itself changes nothing: the
partition takes them from the effective CPUs of every other cgroup.

Source:
    Linux, Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files";
    kernel/cgroup/cpuset.c for the reasons.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.values import NO_CPUS, CpuSet

EXCLUSIVE: Final = "cpuset.cpus.exclusive"
PARTITION: Final = "cpuset.cpus.partition"

NO_FILE: Final = "the kernel has no cpuset.cpus.exclusive, Linux 6.7 has"

MEMBER: Final = "member"
"""Content of the file of a cgroup that is no partition of its own."""

# ``root invalid (reason)``; kernels leave the reason out where a sibling is the cause.
_STATE: Final = re.compile(r"(?P<kind>[a-z]+)(?P<bad> invalid(?: \((?P<why>.*)\))?)?")

_BESIDE: Final = (
    "another cgroup in the same pod may use one of the CPUs: its cpuset.cpus has it"
)
_TAKEN: Final = (
    "one of the CPUs belongs to another partition, or no CPU would be left; see "
    "cpuset.cpus.partition and cpuset.cpus.exclusive of the other cgroups"
)
_ABOVE: Final = (
    "a cgroup above it does not hand the CPUs down: its cpuset.cpus.exclusive lacks one"
)

_EXPLAINED: Final = {
    "": _BESIDE,
    "Cpu list in cpuset.cpus not exclusive": _BESIDE,
    "Invalid cpu list in cpuset.cpus.exclusive": _TAKEN,
    "Parent is not a partition root": _ABOVE,
    "Parent is an invalid partition root": _ABOVE,
    "Parent unable to distribute cpu downstream": _ABOVE,
    "No cpu available due to hotplug": "all its CPUs are offline",
    "cpuset.cpus and cpuset.cpus.exclusive are empty": _ABOVE,
    "partition config conflicts with housekeeping setup": (
        "isolcpus= or nohz_full= names some of the CPUs, or all others"
    ),
    "Enable partition not permitted": "the daemon lacks CAP_SYS_ADMIN",
    "Have remote partition underneath": "a cgroup below it is a partition itself",
}


class PartitionKind(enum.StrEnum):
    """The kind of partition that a cgroup is the root of; the value is its file's."""

    ROOT = "root"
    """A partition whose load is balanced between its CPUs."""

    ISOLATED = "isolated"
    """A partition whose CPUs are in no domain of the scheduler."""


class PartitionWish(msgspec.Struct, frozen=True):
    """A partition that is to be in force for a container.

    Attributes:
        container: The runtime's id.
        folder: The cgroup with its CPUs.
        top: The root of all cgroups.
    """

    container: str
    folder: str
    top: str
    cpus: CpuSet
    kind: PartitionKind = PartitionKind.ROOT


class PartitionState(msgspec.Struct, frozen=True):
    """The state of a partition, as the kernel reports it.

    Attributes:
        kind: ``root``, ``isolated`` or ``member``; empty where there is no file.
        why: Why it is not valid, in the kernel's words; may be empty then.
    """

    kind: str = ""
    is_valid: bool = False
    why: str = ""

    def is_in_force(self, kind: PartitionKind) -> bool:
        """Return whether this is a valid partition of a kind."""
        return self.is_valid and self.kind == kind


ABSENT: Final = PartitionState()
"""The cgroup, or its file, does not exist."""


def read_partition(text: str | None) -> PartitionState:
    """Read the content of ``cpuset.cpus.partition``; None for no file.

    >>> read_partition("root")
    PartitionState(kind='root', is_valid=True, why='')
    >>> read_partition("isolated invalid (Parent is not a partition root)").why
    'Parent is not a partition root'
    """
    match = _STATE.fullmatch((text or "").strip())
    if match is None:
        return PartitionState(why=repr(text)) if text else ABSENT
    kind, is_bad = match["kind"], match["bad"] is not None
    return PartitionState(kind, kind != MEMBER and not is_bad, match["why"] or "")


def explained(state: PartitionState) -> str:
    """Return why a partition is not in force: the kernel's reason, and what it means.

    >>> explained(read_partition("root invalid (No cpu available due to hotplug)"))
    'root invalid (No cpu available due to hotplug): all its CPUs are offline'
    """
    if not state.kind:
        return f"unknown state {state.why}" if state.why else "the cgroup is gone"
    if state.kind == MEMBER:
        return "the kernel, or another program, has ended the partition"
    said = f"{state.kind} invalid" + (f" ({state.why})" if state.why else "")
    meaning = _EXPLAINED.get(state.why, "")
    return f"{said}: {meaning}" if meaning else said


def kind_of(
    exclusivity: Exclusivity, cpus: CpuSet, isolated: CpuSet, *, unbalanced: bool
) -> PartitionKind | None:
    """Return the kind of partition for a container's exclusive CPUs; None for none.

    CPUs of ``isolcpus=`` have none: nothing runs there that is not put there, and
    their load is not balanced. At least Linux 6.12 would use them for unbound work once
    an isolated partition with them has ended.

    Args:
        exclusivity: What keeps other processes off, by the configuration.
        cpus: The exclusive CPUs.
        isolated: The CPUs of ``isolcpus=``.
        unbalanced: Whether the container's annotation switches load balancing off.
    """
    if cpus <= isolated:
        return None
    if unbalanced or exclusivity is Exclusivity.ISOLATED_PARTITION:
        return PartitionKind.ISOLATED
    return None if exclusivity is Exclusivity.CPUSET else PartitionKind.ROOT


def folders_above(folder: str, top: str) -> tuple[str, ...]:
    """Return the folders between the root of all cgroups and one cgroup, top down.

    >>> folders_above("/cg/pods/p/c", "/cg")
    ('/cg/pods', '/cg/pods/p')
    """
    *steps, _ = folder.removeprefix(f"{top}/").split("/")
    return tuple("/".join((top, *steps[: count + 1])) for count in range(len(steps)))


def handed_down(wishes: Iterable[PartitionWish]) -> dict[str, CpuSet]:
    """Return the CPUs that each cgroup above partitions hands down, top down."""
    cpus: dict[str, CpuSet] = {}
    for wish in wishes:
        for folder in folders_above(wish.folder, wish.top):
            cpus[folder] = cpus.get(folder, NO_CPUS) | wish.cpus
    return {one: cpus[one] for one in sorted(cpus, key=_depth)}


def bottom_up(folders: Iterable[str]) -> list[str]:
    """Return folders, those that are further down first."""
    return sorted(folders, key=_depth, reverse=True)


def shared_value(
    present: CpuSet, added: CpuSet, wanted: CpuSet
) -> tuple[CpuSet, CpuSet]:
    """Return the new value of a file in which other programs have CPUs as well.

    Their CPUs stay: those that are there and were not added by this program.

    Args:
        present: Its value.
        added: CPUs in it that only this program has added.
        wanted: CPUs that it has to have for partitions of this program.

    Returns:
        The new value, and which CPUs of it are then added by this program.

    >>> value, added = shared_value(CpuSet.of(2, 6), CpuSet.of(2), CpuSet.of(3, 6))
    >>> str(value), str(added)
    ('3,6', '3')
    """
    others = present - added
    return others | wanted, wanted - others


def _depth(folder: str) -> tuple[int, str]:
    return folder.count("/"), folder
