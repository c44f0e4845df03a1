"""Compares decided with actual values of a cgroup, and describes the differences."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.host.cgroups.containers import EffectiveResources, RequestedCpuset
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import CpuSet, NodeSet
from nri_resmgr.values.cpu_weights import clamped_shares, weights_for


class Verdict(enum.StrEnum):
    """Result of inspecting a container's cgroup."""

    AS_DECIDED = "as-decided"
    DRIFTED = "drifted"
    CONTESTED = "contested"
    CONFINED = "confined"
    OFFLINE = "offline"
    PENDING = "pending"
    NOT_RUNNING = "not-running"
    NOT_PINNED = "not-pinned"
    UNREADABLE = "unreadable"


class DriftKind(enum.StrEnum):
    """The value that differs."""

    CPUS = "cpus"
    MEMS = "mems"
    SHARES = "shares"


class CgroupDifference(msgspec.Struct, frozen=True):
    """One value that is not as decided.

    Attributes:
        wanted: As decided, in the kernel's notation.
    """

    kind: DriftKind
    wanted: str
    found: str


class Finding(msgspec.Struct, frozen=True):
    """The result of the last inspection of a container.

    Attributes:
        folder: The cgroup's path on the host; empty where there are no differences.
        why: Why the cgroup could not be read.
    """

    verdict: Verdict
    differences: tuple[CgroupDifference, ...] = ()
    folder: str = ""
    why: str = ""

    @property
    def kinds(self) -> tuple[DriftKind, ...]:
        """The values that differ."""
        return tuple(one.kind for one in self.differences)


class PresentResources(msgspec.Struct, frozen=True):
    """CPUs and nodes at the moment, which the policy may not know of yet.

    Attributes:
        cpus: Online CPUs.
        mems: Nodes with memory.
    """

    cpus: CpuSet
    mems: NodeSet


AS_DECIDED: Final = Finding(Verdict.AS_DECIDED)
PENDING: Final = Finding(Verdict.PENDING)
NOT_RUNNING: Final = Finding(Verdict.NOT_RUNNING)
NOT_PINNED: Final = Finding(Verdict.NOT_PINNED)

_FOUND: Final = {
    DriftKind.CPUS: "may run on CPUs",
    DriftKind.MEMS: "may use memory of nodes",
    DriftKind.SHARES: "has CPU shares",
}
_ENDINGS: Final = {
    Verdict.DRIFTED: "another program wrote {}",
    Verdict.CONFINED: "a parent cgroup of {} allows no more",
    Verdict.OFFLINE: "the missing ones of {} are offline",
}


def while_contested(finding: Finding) -> Finding:
    """Return the finding of a container whose CPUs are overwritten all the time.

    It has the decided ones or not, by the moment: `app.running.overwrites` writes them
    again. Other differences are as for any container.
    """
    is_of_moment = finding.verdict is Verdict.DRIFTED and finding.kinds == (
        DriftKind.CPUS,
    )
    if is_of_moment or finding.verdict is Verdict.AS_DECIDED:
        return msgspec.structs.replace(finding, verdict=Verdict.CONTESTED)
    return finding


def differences_of(
    wanted: Pin, found: EffectiveResources
) -> tuple[CgroupDifference, ...]:
    """Compare decided values with those in force.

    Values that are not pinned, or that the kernel does not report, never differ.
    """
    return tuple(_differences(wanted, found))


def classify(
    wanted: Pin,
    found: EffectiveResources,
    asked_for: RequestedCpuset,
    present: PresentResources,
) -> Finding:
    """Determine the verdict of a container.

    A cgroup has in force what was written to it, as far as these CPUs or nodes are
    online and its parent cgroups allow them. Where the decided values are still
    written in the cgroup, no other program has changed it: the missing CPUs or nodes
    are offline, or a parent cgroup excludes them.

    Args:
        wanted: As decided.
        found: In force.
        asked_for: Written into the cgroup.
        present: CPUs and nodes of the machine.
    """
    differences = differences_of(wanted, found)
    if not differences:
        return AS_DECIDED
    # Differences that offline CPUs explain are only reported if there are no others.
    others = tuple(one for one in differences if not _is_offline(one, present))
    if not others:
        return Finding(Verdict.OFFLINE, differences, found.folder)
    if all(_is_confined(one, wanted, asked_for) for one in others):
        return Finding(Verdict.CONFINED, others, found.folder)
    return Finding(Verdict.DRIFTED, others, found.folder)


def sentence(title: str, finding: Finding) -> str:
    """Describe the differences of a container, ``namespace/pod/container``."""
    parts = " and ".join(
        f"{_FOUND[one.kind]} {one.found or 'none'}, but {one.wanted} was decided"
        for one in finding.differences
    )
    return f"{title} {parts}: {_ENDINGS[finding.verdict].format(finding.folder)}"


def _differences(wanted: Pin, found: EffectiveResources) -> Iterator[CgroupDifference]:
    for kind, decided, actual in (
        (DriftKind.CPUS, wanted.cpus, found.cpus),
        (DriftKind.MEMS, wanted.mems, found.mems),
    ):
        if decided.bits and actual is not None and decided.bits != actual.bits:
            yield CgroupDifference(kind, str(decided), str(actual))
    shares, kind = wanted.shares, DriftKind.SHARES
    if shares and found.shares not in (None, clamped_shares(shares)):
        yield CgroupDifference(kind, str(shares), str(found.shares))
    if shares and found.weights and weights_for(shares).isdisjoint(found.weights):
        yield CgroupDifference(kind, str(shares), f"of weight {found.weights[0]}")


def _is_offline(one: CgroupDifference, present: PresentResources) -> bool:
    if one.kind is DriftKind.SHARES:
        return False
    online = present.cpus if one.kind is DriftKind.CPUS else present.mems
    wanted, found = CpuSet.parse(one.wanted).bits, CpuSet.parse(one.found).bits
    left = wanted & online.bits
    # Where none is left the kernel gives a cgroup those of its parent.
    return left != wanted and (found == left or not left)


def _is_confined(
    one: CgroupDifference, wanted: Pin, asked_for: RequestedCpuset
) -> bool:
    match one.kind:
        case DriftKind.CPUS:
            return asked_for.cpus == wanted.cpus
        case DriftKind.MEMS:
            return asked_for.mems == wanted.mems
        case DriftKind.SHARES:
            return False
