"""Zones of requests: the start zone, the widest zone, and the steps between."""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.policy.mems.errors import MemoryKindMissing, NormalMemoryMissing
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.request import MemoryGrant, MemoryRequest
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NodeSet

# The order in which kinds are granted unasked: fast and plentiful first. HBM comes last
# since it is scarce and asked for by name.
_FALLBACKS: Final = (MemoryKind.DRAM, MemoryKind.CXL, MemoryKind.PMEM, MemoryKind.HBM)


class ZoneRule(enum.StrEnum):
    """The rule by which a zone was chosen.

    `AFFINITY`: the nodes of the affinity have all preferred kinds of memory.
    `NEAREST_KIND`: they lack some; the nearest nodes with these were added.
    `NORMAL_MEMORY`: all of these were movable; the nearest that are not were added.
    `KEPT`: the request had the zone before.
    `GROWN`: nodes or kinds were added on demand.
    """

    AFFINITY = "affinity"
    NEAREST_KIND = "nearest-kind"
    NORMAL_MEMORY = "normal-memory"
    KEPT = "kept"
    GROWN = "grown"


class StartZone(msgspec.Struct, frozen=True):
    """The zone of a request before any widening."""

    zone: NodeSet
    kinds: frozenset[MemoryKind]
    rules: tuple[ZoneRule, ...]


def start_of(request: MemoryRequest, near: NodeSet, layout: MemoryLayout) -> StartZone:
    """Return the zone that a request starts with, near to some nodes.

    Raises:
        MemoryKindMissing: A strict request names a kind that no node has.
        NormalMemoryMissing: A strict request names only movable memory.
        ValueError: *near* is empty or has an unknown node.
    """
    if not near.bits or near.bits & ~layout.known:
        raise ValueError(f"{request.title} has no known node as affinity: {near}")
    if request.strict and (missing := request.kinds.difference(layout.kinds)):
        raise MemoryKindMissing(request.title, missing, frozenset(layout.kinds))
    start = _start(near.bits, request.kinds, request.strict, layout)
    if not start.zone.bits & layout.normal:
        normal = layout.kinds_in(layout.normal)
        raise NormalMemoryMissing(request.title, start.kinds, normal)
    return start


def reach_of(grant: MemoryGrant, layout: MemoryLayout) -> int:
    """Return all nodes that a grant may be widened to."""
    if grant.is_fixed:
        return grant.zone.bits
    if not grant.request.strict:
        return layout.nodes
    return grant.zone.bits | layout.of_kinds(grant.kinds)


def widened(grant: MemoryGrant, zone: int, layout: MemoryLayout) -> int:
    """Return *zone* with the nearest nodes that the grant may be widened to.

    The grant's own kinds come first, then one further kind after the other. The zone
    is returned unchanged where it cannot be widened.
    """
    return zone | _next_ring(zone, grant.kinds, grant.request.strict, layout)


# A machine has few different results, and each is needed often.
@lru_cache(maxsize=4096)
def _next_ring(
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
) -> StartZone:
    there = frozenset(layout.kinds)
    kinds = wanted & there or layout.kinds_in(near) or _usual(there)
    missing = kinds - layout.kinds_in(near)
    around = near | layout.nearest(near, missing)
    rule = ZoneRule.NEAREST_KIND if missing else ZoneRule.AFFINITY
    start = StartZone(NodeSet(around & layout.of_kinds(kinds)), kinds, (rule,))
    if start.zone.bits & layout.normal:
        return start
    return _with_normal(start, layout, strict=strict)


def _with_normal(start: StartZone, layout: MemoryLayout, *, strict: bool) -> StartZone:
    """Widen a zone until it has memory that the kernel can use, if possible."""
    normal = layout.kinds_in(layout.normal)
    kinds = start.kinds & normal or (frozenset() if strict else _usual(normal))
    zone = start.zone.bits
    while not zone & layout.normal and (more := layout.nearest(zone, kinds)):
        zone |= more
    rules = (*start.rules, ZoneRule.NORMAL_MEMORY)
    return StartZone(NodeSet(zone), start.kinds | kinds, rules)


def _usual(there: frozenset[MemoryKind]) -> frozenset[MemoryKind]:
    return frozenset([kind for kind in _FALLBACKS if kind in there][:1])
