"""What was decided against what the kernel has in force: judged, and put into words."""

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
    """What a look at a container's cgroup showed."""

    AS_DECIDED = "as-decided"
    DRIFTED = "drifted"
    CONFINED = "confined"
    OFFLINE = "offline"
    PENDING = "pending"
    NOT_RUNNING = "not-running"
    NOT_PINNED = "not-pinned"
    UNREADABLE = "unreadable"


class DriftKind(enum.StrEnum):
    """What differs."""

    CPUS = "cpus"
    MEMS = "mems"
    SHARES = "shares"


class Difference(msgspec.Struct, frozen=True):
    """One value that is not as decided.

    Attributes:
        kind: Which.
        wanted: As decided, in words of the kernel.
        found: What is in force.
    """

    kind: DriftKind
    wanted: str
    found: str


class Finding(msgspec.Struct, frozen=True):
    """What the last look at a container showed.

    Attributes:
        verdict: In a word.
        differences: What is not as decided, where that is the verdict.
        folder: The cgroup, as the host names it; empty where there is none.
        why: What could not be read.
    """

    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    folder: str = ""
    why: str = ""

    @property
    def kinds(self) -> tuple[DriftKind, ...]:
        """What differs."""
        return tuple(one.kind for one in self.differences)


class Present(msgspec.Struct, frozen=True):
    """What there is at the moment, which decisions may not know of yet.

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
    Verdict.DRIFTED: "somebody else wrote {}",
    Verdict.CONFINED: "a cgroup above {} has no more",
    Verdict.OFFLINE: "the others of {} are offline",
}

# cpu.shares and cpu.weight, kernel and runc.
_MIN_SHARES: Final = 2
_MAX_SHARES: Final = 262_144
_MAX_WEIGHT: Final = 10_000


def differences_of(wanted: Pin, found: EffectiveResources) -> tuple[Difference, ...]:
    """Compare what should hold with what does.

    What is not pinned, and what the kernel does not tell, differs in nothing.
    """
    cpus, mems = found.cpus, found.mems
    weight = tuple(_weight_difference(wanted.shares, found))
    # Nearly always nothing differs, and all of a node's containers are asked about.
    if _same(wanted.cpus, cpus) and _same(wanted.mems, mems):
        return weight
    return (
        tuple(
            Difference(kind, str(should), str(does))
            for kind, should, does in (
                (DriftKind.CPUS, wanted.cpus, cpus),
                (DriftKind.MEMS, wanted.mems, mems),
            )
            if not _same(should, does) and does is not None
        )
        + weight
    )


def judge(
    wanted: Pin, found: EffectiveResources, asked_for: RequestedCpuset, present: Present
) -> Finding:
    """Say what it means that something differs.

    A cgroup has in force what was asked for, as far as there are such CPUs or nodes
    and those above it have them. Where just what was decided was asked for, nobody
    has touched it: then what is missing is offline, or a cgroup above leaves it out.

    Args:
        wanted: As decided.
        found: In force.
        asked_for: Written into the cgroup.
        present: What there is on the machine.
    """
    differences = differences_of(wanted, found)
    if not differences:
        return AS_DECIDED
    # What went offline explains itself, and what is left says more.
    left = tuple(one for one in differences if not _is_offline(one, present))
    if not left:
        return Finding(Verdict.OFFLINE, differences, found.folder)
    if all(_is_confined(one, wanted, asked_for) for one in left):
        return Finding(Verdict.CONFINED, left, found.folder)
    return Finding(Verdict.DRIFTED, left, found.folder)


def sentence(title: str, finding: Finding) -> str:
    """Say of a container what differs.

    Args:
        title: ``namespace/pod/container``.
        finding: With a difference.
    """
    parts = " and ".join(_words(one) for one in finding.differences)
    return f"{title} {parts}: {_ENDINGS[finding.verdict].format(finding.folder)}"


@lru_cache(maxsize=1024)
def weights_for(shares: int) -> frozenset[int]:
    """Give each ``cpu.weight`` that some runtime makes of ``cpu.shares``.

    Source:
        opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value, before and after
        v0.0.3: a straight line first, then a curve through 1024 and 100.
    """
    inside = _as_kept(shares)
    line = 1 + (inside - _MIN_SHARES) * (_MAX_WEIGHT - 1) // (_MAX_SHARES - _MIN_SHARES)
    log = math.log2(inside)
    curve = 10 ** ((log * log + 125 * log) / 612 - 7 / 34)
    # Programs differ in how they round.
    around = (math.floor(curve), math.ceil(curve), math.ceil(curve) + 1)
    return frozenset((line, *(min(one, _MAX_WEIGHT) for one in around)))


def _same(should: CpuSet | NodeSet, does: CpuSet | NodeSet | None) -> bool:
    return not should.bits or does is None or should.bits == does.bits


def _as_kept(shares: int) -> int:
    """Give what the kernel makes of shares outside its range."""
    return min(max(shares, _MIN_SHARES), _MAX_SHARES)


def _weight_difference(shares: int, found: EffectiveResources) -> Iterator[Difference]:
    if shares and found.shares not in (None, _as_kept(shares)):
        yield Difference(DriftKind.SHARES, str(shares), str(found.shares))
    if shares and found.weights and weights_for(shares).isdisjoint(found.weights):
        yield Difference(DriftKind.SHARES, str(shares), f"of weight {found.weights[0]}")


def _is_offline(one: Difference, present: Present) -> bool:
    if one.kind is DriftKind.SHARES:
        return False
    there = present.cpus if one.kind is DriftKind.CPUS else present.mems
    wanted, found = CpuSet.parse(one.wanted).bits, CpuSet.parse(one.found).bits
    left = wanted & there.bits
    # Where nothing is left the kernel gives a cgroup what the one above has.
    return left != wanted and (found == left or not left)


def _is_confined(one: Difference, wanted: Pin, asked_for: RequestedCpuset) -> bool:
    match one.kind:
        case DriftKind.CPUS:
            return asked_for.cpus == wanted.cpus
        case DriftKind.MEMS:
            return asked_for.mems == wanted.mems
        case DriftKind.SHARES:
            return False


def _words(one: Difference) -> str:
    found = one.found or "none"
    match one.kind:
        case DriftKind.CPUS:
            return f"may run on CPUs {found}, but was given {one.wanted}"
        case DriftKind.MEMS:
            return f"may use memory of nodes {found}, but was given {one.wanted}"
        case DriftKind.SHARES:
            return f"has CPU shares {found}, but was given {one.wanted}"
