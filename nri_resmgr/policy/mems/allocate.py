"""Offers of memory nodes to requests, and checks whether a request fits."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.mems.errors import MemoryShort
from nri_resmgr.policy.mems.layout import BASE_PAGES, MemoryLayout
from nri_resmgr.policy.mems.ledger import MemoryLedger, MemoryOffer
from nri_resmgr.policy.mems.request import MemoryGrant, MemoryRequest
from nri_resmgr.policy.mems.settle import settle
from nri_resmgr.policy.mems.zones import ZoneRule, start_of
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.values import NO_NODES, Bytes, NodeSet


def allocate_memory(request: MemoryRequest, ledger: MemoryLedger) -> MemoryOffer:
    """Offer nodes to a new request.

    It starts with the nodes of its affinity, as far as they have the preferred kinds
    of memory. Where the grants of some nodes then exceed their capacity, requests are
    widened to the next nearest nodes until all fit: the least important first, be it
    the new one. No request is widened if widening less important ones suffices, and
    no request loses a node.

    Raises:
        MemoryShort: It does not fit even if all others are widened.
        MemoryKindMissing: It is strict and no node has a kind that it names.
        NormalMemoryMissing: It is strict and names only movable memory.
        ValueError: The id is not new, or the affinity names no known node.

    Source:
        The zones of nri-plugins, ``pkg/resmgr/lib/memory/doc.go``.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> ledger = MemoryLedger.of(parse_spec("2s1c memory=4Gi"))
    >>> web = MemoryRequest(id="web", affinity=NodeSet.of(0), size=Bytes(3 << 30))
    >>> ledger = allocate_memory(web, ledger).commit(ledger)
    >>> db = MemoryRequest(id="db", affinity=NodeSet.of(0), size=Bytes(2 << 30))
    >>> offer = allocate_memory(db, ledger)
    >>> str(offer.zone), [(one.id, str(one.after)) for one in offer.widened]
    ('0-1', [('db', '0-1')])
    """
    _check_new(request, ledger)
    return _placed(request, ledger, _next_age(ledger))


def replace_memory(request: MemoryRequest, ledger: MemoryLedger) -> MemoryOffer:
    """Offer nodes to a known request as if it were new.

    Only this takes nodes away from a request: use it on demand.

    Raises:
        KeyError: The request is not in the ledger.
        PolicyError: As `allocate_memory`; the present grant still holds.
    """
    return _placed(request, ledger, ledger.grants[request.id].age)


def restore_memory(
    request: MemoryRequest, zone: NodeSet, ledger: MemoryLedger
) -> MemoryOffer:
    """Offer a new request the nodes that it had before a restart.

    Raises:
        MemoryShort: It no longer fits even if all others are widened.
        MemoryKindMissing, NormalMemoryMissing: As `allocate_memory`.
        ValueError: The id is not new, or a node of *zone* has no memory.
    """
    _check_new(request, ledger)
    if not zone or zone.bits & ~ledger.layout.nodes:
        raise ValueError(f"{request.title} cannot have had memory on nodes {zone}")
    start = start_of(request, request.affinity, ledger.layout)
    grant = MemoryGrant(request, zone, start.kinds, _next_age(ledger))
    return _offer(grant, (ZoneRule.KEPT,), ledger)


def adopt_memory(
    request: MemoryRequest, zone: NodeSet, ledger: MemoryLedger
) -> MemoryOffer:
    """Offer a running container its present nodes; never refuses.

    A part that does not fit is not counted: `offer.grant.request` has what is. Nodes
    without memory are left out; without any other, all nodes are offered. Kinds that
    the machine lacks are dropped, even from a strict request.

    Raises:
        ValueError: The id is not new.
    """
    _check_new(request, ledger)
    layout = ledger.layout
    here = zone.bits & layout.nodes or layout.nodes
    kinds = request.kinds.intersection(layout.kinds) or layout.kinds_in(here)
    while True:
        grant = MemoryGrant(request, NodeSet(here), kinds, _next_age(ledger))
        try:
            return _offer(grant, (ZoneRule.KEPT,), ledger)
        except MemoryShort as short:
            request = _cut(request, short)


def _cut(request: MemoryRequest, short: MemoryShort) -> MemoryRequest:
    """Reduce a request to the most that fits."""
    page = short.page_size
    if page == BASE_PAGES:
        return replace(request, size=short.most)
    pools = (
        replace(pool, count=short.most // page) if pool.size == page else pool
        for pool in request.hugepages
    )
    return replace(request, hugepages=tuple(pools))


def resize_memory(
    request: str, size: Bytes, hugepages: tuple[HugePages, ...], ledger: MemoryLedger
) -> MemoryOffer:
    """Offer a known request another size; it keeps all its nodes.

    Raises:
        KeyError: The request is not in the ledger.
        MemoryShort: It does not fit even if all others are widened; the present
            grant still holds.
    """
    old = ledger.grants[request]
    resized = replace(old.request, size=size, hugepages=hugepages)
    grant = replace(old, request=resized)
    return _offer(grant, (ZoneRule.KEPT,), ledger)


def grow_memory(
    request: str,
    ledger: MemoryLedger,
    *,
    nodes: NodeSet = NO_NODES,
    kinds: Iterable[MemoryKind] = (),
) -> MemoryOffer:
    """Offer a known request more nodes; it keeps its present ones.

    Added are *nodes*, as far as they have memory of *kinds*, and the nearest nodes of
    each kind that is still missing. No *kinds* stand for all of them.

    Raises:
        KeyError: The request is not in the ledger.
    """
    old, layout = ledger.grants[request], ledger.layout
    wanted = frozenset(kinds)
    zone = _grown(old.zone.bits, nodes.bits, wanted, layout)
    added = layout.kinds_in(zone) if nodes else wanted & frozenset(layout.kinds)
    grant = replace(old, zone=NodeSet(zone), kinds=old.kinds | added)
    rule = ZoneRule.KEPT if grant.zone == old.zone else ZoneRule.GROWN
    return _offer(grant, (rule,), ledger)


def _grown(
    zone: int, nodes: int, kinds: frozenset[MemoryKind], layout: MemoryLayout
) -> int:
    zone |= nodes & layout.nodes & (layout.of_kinds(kinds) if kinds else -1)
    return zone | layout.nearest(zone, kinds - layout.kinds_in(zone))


def _placed(request: MemoryRequest, ledger: MemoryLedger, age: int) -> MemoryOffer:
    start = start_of(request, request.affinity, ledger.layout)
    grant = MemoryGrant(request, start.zone, start.kinds, age)
    return _offer(grant, start.rules, ledger)


def _offer(
    grant: MemoryGrant, rules: tuple[ZoneRule, ...], ledger: MemoryLedger
) -> MemoryOffer:
    after, widened = settle(grant, ledger)
    final = after.grants[grant.request.id]
    return MemoryOffer(ledger, after, final, rules, widened)


def _check_new(request: MemoryRequest, ledger: MemoryLedger) -> None:
    if request.id in ledger.grants:
        raise ValueError(f"{request.title} has memory already")


def _next_age(ledger: MemoryLedger) -> int:
    youngest = next(reversed(ledger.grants), None)
    return 0 if youngest is None else ledger.grants[youngest].age + 1


class MemoryFit(msgspec.Struct, frozen=True):
    """The zone that a request would start with, by *rules* in order.

    It *fits* if no request has to be widened, itself included.
    """

    zone: NodeSet
    rules: tuple[ZoneRule, ...]
    fits: bool


def fit_memory(
    request: MemoryRequest, ledger: MemoryLedger, near: NodeSet | None = None
) -> MemoryFit:
    """Return whether a new request fits with no request widened, itself included.

    This is far cheaper than an offer, so that a policy can call it for every pool.
    Where it fits, `allocate_memory` offers exactly this zone; where not, only an offer
    shows which requests would be widened. *near* replaces the request's affinity.

    Raises:
        MemoryKindMissing, NormalMemoryMissing, ValueError: As `allocate_memory`.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> from nri_resmgr.values import Bytes
    >>> ledger = MemoryLedger.of(parse_spec("2s1c memory=4Gi,2Gi"))
    >>> web = MemoryRequest(id="web", affinity=NodeSet.of(0), size=Bytes(3 << 30))
    >>> [fit_memory(web, ledger, NodeSet.of(node)).fits for node in (0, 1)]
    [True, False]
    """
    near = request.affinity if near is None else near
    start, accounts = start_of(request, near, ledger.layout), ledger.accounts
    fits = all(
        accounts.has_room(start.zone.bits, page, amount)
        for page, amount in request.demand
    )
    return MemoryFit(start.zone, start.rules, fits)
