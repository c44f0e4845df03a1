"""Compares decided with actual values of a cgroup, and describes the differences."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.host.cgroups.containers import EffectiveResources, RequestedCpuset
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import CpuSet, NodeSet


class Verdict(enum.StrEnum):
    """Result of inspecting a container's cgroup."""

    AS_DECIDED = "as-decided"
    DRIFTED = "drifted"
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
        kind: Which value.
        wanted: As decided, in the kernel's notation.
        found: As in force.
    """

    kind: DriftKind
    wanted: str
    found: str


class Finding(msgspec.Struct, frozen=True):
    """The result of the last inspection of a container.

    Attributes:
        verdict: The verdict.
        differences: The values that are not as decided.
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

_ENDINGS: Final = {
    Verdict.DRIFTED: "another program wrote {}",
    Verdict.CONFINED: "a parent cgroup of {} allows no more",
    Verdict.OFFLINE: "the missing ones of {} are offline",
}

# Ranges of cpu.shares and cpu.weight, in the kernel and in runc.
_MIN_SHARES: Final = 2
_MAX_SHARES: Final = 262_144
_MAX_WEIGHT: Final = 10_000


def differences_of(
    wanted: Pin, found: EffectiveResources
) -> tuple[CgroupDifference, ...]:
    """Compare decided values with those in force.

    Values that are not pinned, or that the kernel does not report, never differ.
    """
    cpus, mems = found.cpus, found.mems
    weight = tuple(_weight_difference(wanted.shares, found))
    # The fast path: called for all containers, and nearly always nothing differs.
    if _same(wanted.cpus, cpus) and _same(wanted.mems, mems):
        return weight
    return (
        tuple(
            CgroupDifference(kind, str(decided), str(actual))
            for kind, decided, actual in (
                (DriftKind.CPUS, wanted.cpus, cpus),
                (DriftKind.MEMS, wanted.mems, mems),
            )
            if not _same(decided, actual) and actual is not None
        )
        + weight
    )


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
    """Describe the differences of a container in a sentence.

    Args:
        title: ``namespace/pod/container``.
        finding: With a difference.
    """
    parts = " and ".join(_describe(one) for one in finding.differences)
    return f"{title} {parts}: {_ENDINGS[finding.verdict].format(finding.folder)}"


@lru_cache(maxsize=1024)
def weights_for(shares: int) -> frozenset[int]:
    """Return each ``cpu.weight`` that some runtime computes from ``cpu.shares``.

    Source:
        opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value, before and after
        v0.0.3: a straight line first, then a curve through 1024 and 100.
    """
    inside = _clamped(shares)
    line = 1 + (inside - _MIN_SHARES) * (_MAX_WEIGHT - 1) // (_MAX_SHARES - _MIN_SHARES)
    log = math.log2(inside)
    curve = 10 ** ((log * log + 125 * log) / 612 - 7 / 34)
    # Runtimes differ in how they round.
    around = (math.floor(curve), math.ceil(curve), math.ceil(curve) + 1)
    return frozenset((line, *(min(one, _MAX_WEIGHT) for one in around)))


def _same(decided: CpuSet | NodeSet, actual: CpuSet | NodeSet | None) -> bool:
    return not decided.bits or actual is None or decided.bits == actual.bits


def _clamped(shares: int) -> int:
    """Limit shares to the kernel's range, as the kernel does."""
    return min(max(shares, _MIN_SHARES), _MAX_SHARES)


def _weight_difference(
    shares: int, found: EffectiveResources
) -> Iterator[CgroupDifference]:
    kind = DriftKind.SHARES
    if shares and found.shares not in (None, _clamped(shares)):
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


def _describe(one: CgroupDifference) -> str:
    found = one.found or "none"
    match one.kind:
        case DriftKind.CPUS:
            return f"may run on CPUs {found}, but was given {one.wanted}"
        case DriftKind.MEMS:
            return f"may use memory of nodes {found}, but was given {one.wanted}"
        case DriftKind.SHARES:
            return f"has CPU shares {found}, but was given {one.wanted}"
