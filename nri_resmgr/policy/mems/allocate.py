"""Offer memory nodes to a request, new or known."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nri_resmgr.policy.mems.errors import MemoryShort
from nri_resmgr.policy.mems.layout import BASE_PAGES, MemoryLayout
from nri_resmgr.policy.mems.ledger import MemoryLedger
from nri_resmgr.policy.mems.offer import MemoryOffer
from nri_resmgr.policy.mems.request import Grant, MemoryRequest
from nri_resmgr.policy.mems.settle import settle
from nri_resmgr.policy.mems.zones import ZoneRule, start_of
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.values import NO_NODES, Bytes, NodeSet


def allocate_memory(request: MemoryRequest, ledger: MemoryLedger) -> MemoryOffer:
    """Offer nodes to a new request.

    It starts with the nodes it wants to be near to, as far as they have the
    kinds of memory it wants. Where some nodes are then promised more than they
    hold, requests are widened to the next nearest nodes until everybody fits:
    the least important first, be it the new one. Nobody is widened who could be
    spared by widening less important ones only, and nobody loses a node.

    Args:
        request: What is wanted; its id must be new.
        ledger: What is promised already; it is not changed.

    Raises:
        MemoryShort: It fits nowhere, whoever is widened.
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

    This is the only way to lose nodes: use it where that was asked for.

    Raises:
        KeyError: The request is not in the ledger.
        PolicyError: As `allocate_memory`; the old grant still holds.
    """
    return _placed(request, ledger, ledger.grants[request.id].age)


def restore_memory(
    request: MemoryRequest, zone: NodeSet, ledger: MemoryLedger
) -> MemoryOffer:
    """Offer a new request the nodes that it had before a restart.

    Raises:
        MemoryShort: There is no room any more, whoever is widened.
        MemoryKindMissing, NormalMemoryMissing: As `allocate_memory`.
        ValueError: The id is not new, or a node of *zone* has no memory.
    """
    _check_new(request, ledger)
    if not zone or zone.bits & ~ledger.layout.nodes:
        msg = f"{request.title} cannot have had memory on nodes {zone}"
        raise ValueError(msg)
    start = start_of(request, request.affinity, ledger.layout)
    grant = Grant(request, zone, start.kinds, _next_age(ledger))
    return _offer(grant, (ZoneRule.KEPT,), ledger)


def adopt_memory(
    request: MemoryRequest, zone: NodeSet, ledger: MemoryLedger
) -> MemoryOffer:
    """Offer a new request the nodes it runs on, as far as there is room.

    For containers that run already, so that nobody can refuse them. What does
    not fit is not counted: `offer.grant.request` tells what is. Nodes without
    memory are left out, and who has no others may have its memory anywhere.
    Kinds that are not there are dropped, even by a strict request.

    Raises:
        ValueError: The id is not new.
    """
    _check_new(request, ledger)
    layout = ledger.layout
    here = zone.bits & layout.nodes or layout.nodes
    kinds = request.kinds.intersection(layout.kinds) or layout.kinds_in(here)
    while True:
        grant = Grant(request, NodeSet(here), kinds, _next_age(ledger))
        try:
            return _offer(grant, (ZoneRule.KEPT,), ledger)
        except MemoryShort as short:
            request = _cut(request, short)


def _cut(request: MemoryRequest, short: MemoryShort) -> MemoryRequest:
    """Ask for the most that there is room for."""
    page = short.page_size
    if page == BASE_PAGES:
        return msgspec.structs.replace(request, size=short.most)
    pools = (
        msgspec.structs.replace(pool, count=short.most // page)
        if pool.size == page
        else pool
        for pool in request.hugepages
    )
    return msgspec.structs.replace(request, hugepages=tuple(pools))


def resize_memory(
    request: str, size: Bytes, hugepages: tuple[HugePages, ...], ledger: MemoryLedger
) -> MemoryOffer:
    """Offer a known request another size where it is; it keeps all its nodes.

    Raises:
        KeyError: The request is not in the ledger.
        MemoryShort: It does not fit, whoever is widened; the old grant holds.
    """
    old = ledger.grants[request]
    resized = msgspec.structs.replace(old.request, size=size, hugepages=hugepages)
    grant = msgspec.structs.replace(old, request=resized)
    return _offer(grant, (ZoneRule.KEPT,), ledger)


def grow_memory(
    request: str,
    ledger: MemoryLedger,
    *,
    nodes: NodeSet = NO_NODES,
    kinds: Iterable[MemoryKind] = (),
) -> MemoryOffer:
    """Offer a known request more nodes; it keeps those it has.

    Args:
        request: Whose.
        ledger: What is promised.
        nodes: Nodes to add, as far as they have memory and are of *kinds*.
        kinds: Kinds to add; the nearest nodes of each that is still missing
            come on top. All kinds where none is named.

    Raises:
        KeyError: The request is not in the ledger.
    """
    old, layout = ledger.grants[request], ledger.layout
    wanted = frozenset(kinds)
    zone = _grown(old.zone.bits, nodes.bits, wanted, layout)
    added = layout.kinds_in(zone) if nodes else wanted & frozenset(layout.kinds)
    grant = msgspec.structs.replace(old, zone=NodeSet(zone), kinds=old.kinds | added)
    rule = ZoneRule.KEPT if grant.zone == old.zone else ZoneRule.GROWN
    return _offer(grant, (rule,), ledger)


def _grown(
    zone: int, nodes: int, kinds: frozenset[MemoryKind], layout: MemoryLayout
) -> int:
    zone |= nodes & layout.nodes & (layout.of_kinds(kinds) if kinds else -1)
    return zone | layout.nearest(zone, kinds - layout.kinds_in(zone))


def _placed(request: MemoryRequest, ledger: MemoryLedger, age: int) -> MemoryOffer:
    start = start_of(request, request.affinity, ledger.layout)
    grant = Grant(request, start.zone, start.kinds, age)
    return _offer(grant, start.rules, ledger)


def _offer(
    grant: Grant, rules: tuple[ZoneRule, ...], ledger: MemoryLedger
) -> MemoryOffer:
    after, widened = settle(grant, ledger)
    final = after.grants[grant.request.id]
    return MemoryOffer(ledger, after, final, rules, widened)


def _check_new(request: MemoryRequest, ledger: MemoryLedger) -> None:
    if request.id in ledger.grants:
        msg = f"{request.title} has memory already"
        raise ValueError(msg)


def _next_age(ledger: MemoryLedger) -> int:
    youngest = next(reversed(ledger.grants), None)
    return 0 if youngest is None else ledger.grants[youngest].age + 1


class MemoryFit(msgspec.Struct, frozen=True):
    """Where a request would start, and whether it could stay there.

    Attributes:
        zone: The nodes it would start with.
        rules: How they came about, in order.
        fits: Whether they have room for it with nobody widened.
    """

    zone: NodeSet
    rules: tuple[ZoneRule, ...]
    fits: bool


def fit_memory(
    request: MemoryRequest, ledger: MemoryLedger, near: NodeSet | None = None
) -> MemoryFit:
    """Tell whether a new request fits with nobody widened, itself included.

    It is far cheaper than an offer, so a policy can ask it of every pool. Where
    it fits, `allocate_memory` offers just this zone. Where it does not, only an
    offer can tell who would have to give way.

    Args:
        request: What is wanted.
        ledger: What is promised already.
        near: Nodes to be near to, instead of the request's own.

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
