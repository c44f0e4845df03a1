"""Where a request starts, how far it may be widened, and the next step on the way."""

from __future__ import annotations

import enum
from typing import Final

import attrs

from nri_resmgr.policy.mems.errors import MemoryKindMissing, NormalMemoryMissing
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.request import Grant, MemoryRequest
from nri_resmgr.topology import MemoryKind

# What somebody gets who did not ask for it: fast and plentiful first. HBM is
# scarce and others ask for it by name.
_FALLBACKS: Final = (
    MemoryKind.DRAM,
    MemoryKind.CXL,
    MemoryKind.PMEM,
    MemoryKind.HBM,
)


class ZoneRule(enum.StrEnum):
    """Why a request starts where it does.

    `AFFINITY`: the nodes asked for have all kinds of memory asked for.
    `NEAREST_KIND`: they have not; the nearest nodes that have were taken.
    `NORMAL_MEMORY`: all these were movable; the nearest that are not came on
    top.
    `KEPT`: the request was there before.
    `GROWN`: nodes or kinds were added on demand.
    """

    AFFINITY = "affinity"
    NEAREST_KIND = "nearest-kind"
    NORMAL_MEMORY = "normal-memory"
    KEPT = "kept"
    GROWN = "grown"


@attrs.frozen
class Start:
    """The zone that a request has before any shortage is looked at."""

    zone: int
    kinds: frozenset[MemoryKind]
    rules: tuple[ZoneRule, ...]


def start_of(request: MemoryRequest, layout: MemoryLayout) -> Start:
    """Return the zone that fits the request's wishes best.

    Raises:
        MemoryKindMissing: A strict request names a kind that no node has.
        NormalMemoryMissing: A strict request names only movable memory.
        ValueError: The affinity is empty or names a node that is not there.
    """
    affinity = request.affinity.bits
    if not affinity or affinity & ~layout.known:
        msg = f"{request.title}: no nodes to be near to: {request.affinity}"
        raise ValueError(msg)
    kinds = _kinds_wanted(request, layout)
    missing = kinds - layout.kinds_in(affinity)
    near = affinity | layout.nearest(affinity, missing)
    rule = ZoneRule.NEAREST_KIND if missing else ZoneRule.AFFINITY
    start = Start(near & layout.of_kinds(kinds), kinds, (rule,))
    return start if start.zone & layout.normal else _with_normal(request, start, layout)


def reach_of(grant: Grant, layout: MemoryLayout) -> int:
    """Return all the nodes that a grant may ever be widened to."""
    if grant.is_fixed:
        return grant.zone.bits
    if grant.request.strict:
        return grant.zone.bits | layout.of_kinds(grant.kinds)
    return layout.nodes


def widened(grant: Grant, zone: int, layout: MemoryLayout) -> int:
    """Return *zone* and the nearest nodes around it that the grant may have.

    The grant's own kinds go first, then one further kind after the other.
    Nothing is added where the grant has all that it may have.
    """
    kinds = grant.kinds if grant.request.strict else _kinds_had(grant, zone, layout)
    more = layout.nearest(zone, kinds)
    if not more and not grant.request.strict:
        more = next(
            (near for kind in _FALLBACKS if (near := layout.nearest(zone, (kind,)))), 0
        )
    return zone | more


def _kinds_had(grant: Grant, zone: int, layout: MemoryLayout) -> frozenset[MemoryKind]:
    return grant.kinds | layout.kinds_in(zone)


def _kinds_wanted(
    request: MemoryRequest, layout: MemoryLayout
) -> frozenset[MemoryKind]:
    there = frozenset(layout.kinds)
    missing = request.kinds - there
    if missing and request.strict:
        raise MemoryKindMissing(request.title, missing, there)
    return (
        request.kinds & there
        or layout.kinds_in(request.affinity.bits)
        or frozenset([kind for kind in _FALLBACKS if kind in there][:1])
    )


def _with_normal(request: MemoryRequest, start: Start, layout: MemoryLayout) -> Start:
    """Widen a zone until the kernel finds memory for itself in it."""
    normal = layout.kinds_in(layout.normal)
    kinds = start.kinds & normal
    if not kinds and request.strict:
        raise NormalMemoryMissing(request.title, start.kinds, normal)
    if not kinds:
        kinds = frozenset([kind for kind in _FALLBACKS if kind in normal][:1])
    zone = start.zone
    while not zone & layout.normal and (more := layout.nearest(zone, kinds)):
        zone |= more
    rules = (*start.rules, ZoneRule.NORMAL_MEMORY)
    return Start(zone, start.kinds | kinds, rules)
