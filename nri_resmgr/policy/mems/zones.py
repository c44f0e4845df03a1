"""Where a request starts, how far it may be widened, and the next step on the way."""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.policy.mems.errors import MemoryKindMissing, NormalMemoryMissing
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.request import Grant, MemoryRequest
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NodeSet

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


class Start(msgspec.Struct, frozen=True):
    """The zone that a request has before any shortage is looked at."""

    zone: NodeSet
    kinds: frozenset[MemoryKind]
    rules: tuple[ZoneRule, ...]


def start_of(request: MemoryRequest, near: NodeSet, layout: MemoryLayout) -> Start:
    """Return the zone that fits the request's wishes best, near to some nodes.

    Raises:
        MemoryKindMissing: A strict request names a kind that no node has.
        NormalMemoryMissing: A strict request names only movable memory.
        ValueError: *near* is empty or names a node that is not there.
    """
    if not near.bits or near.bits & ~layout.known:
        msg = f"{request.title}: no nodes to be near to: {near}"
        raise ValueError(msg)
    if request.strict and (missing := request.kinds.difference(layout.kinds)):
        raise MemoryKindMissing(request.title, missing, frozenset(layout.kinds))
    start = _start(near.bits, request.kinds, request.strict, layout)
    if not start.zone.bits & layout.normal:
        normal = layout.kinds_in(layout.normal)
        raise NormalMemoryMissing(request.title, start.kinds, normal)
    return start


def reach_of(grant: Grant, layout: MemoryLayout) -> int:
    """Return all the nodes that a grant may ever be widened to."""
    if grant.is_fixed:
        return grant.zone.bits
    if not grant.request.strict:
        return layout.nodes
    return grant.zone.bits | layout.of_kinds(grant.kinds)


def widened(grant: Grant, zone: int, layout: MemoryLayout) -> int:
    """Return *zone* and the nearest nodes around it that the grant may have.

    The grant's own kinds go first, then one further kind after the other.
    Nothing is added where the grant has all that it may have.
    """
    return zone | _fire(zone, grant.kinds, grant.request.strict, layout)


# The memory of a machine has few answers, and each is asked for often.
@lru_cache(maxsize=4096)
def _fire(
    zone: int,
    kinds: frozenset[MemoryKind],
    strict: bool,  # noqa: FBT001 - positional keys make the cache faster
    layout: MemoryLayout,
) -> int:
    if strict:
        return layout.nearest(zone, kinds)
    choices = (kinds | layout.kinds_in(zone), *((kind,) for kind in _FALLBACKS))
    found = (layout.nearest(zone, choice) for choice in choices)
    return next((more for more in found if more), 0)


@lru_cache(maxsize=4096)
def _start(
    near: int,
    wanted: frozenset[MemoryKind],
    strict: bool,  # noqa: FBT001 - as above
    layout: MemoryLayout,
) -> Start:
    kinds = _kinds_wanted(near, wanted, layout)
    missing = kinds - layout.kinds_in(near)
    around = near | layout.nearest(near, missing)
    rule = ZoneRule.NEAREST_KIND if missing else ZoneRule.AFFINITY
    start = Start(NodeSet(around & layout.of_kinds(kinds)), kinds, (rule,))
    if start.zone.bits & layout.normal:
        return start
    return _with_normal(start, layout, strict=strict)


def _kinds_wanted(
    near: int, wanted: frozenset[MemoryKind], layout: MemoryLayout
) -> frozenset[MemoryKind]:
    there = frozenset(layout.kinds)
    return wanted & there or layout.kinds_in(near) or _usual(there)


def _with_normal(start: Start, layout: MemoryLayout, *, strict: bool) -> Start:
    """Widen a zone until the kernel finds memory for itself, if it ever can."""
    normal = layout.kinds_in(layout.normal)
    kinds = start.kinds & normal or (frozenset() if strict else _usual(normal))
    zone = start.zone.bits
    while not zone & layout.normal and (more := layout.nearest(zone, kinds)):
        zone |= more
    rules = (*start.rules, ZoneRule.NORMAL_MEMORY)
    return Start(NodeSet(zone), start.kinds | kinds, rules)


def _usual(there: frozenset[MemoryKind]) -> frozenset[MemoryKind]:
    return frozenset([kind for kind in _FALLBACKS if kind in there][:1])
