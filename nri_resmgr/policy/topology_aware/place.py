"""Placement of containers: the first pool in order of preference that can take one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Self

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import (
    MemoryLedger,
    MemoryOffer,
    MemoryShort,
    grow_memory,
)
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand
from nri_resmgr.policy.topology_aware.errors import (
    Failure,
    PoolShort,
    failure_texts,
    refusal,
)
from nri_resmgr.policy.topology_aware.memory import (
    offer_memory,
    offer_same_memory,
    request_of,
    size_of,
)
from nri_resmgr.policy.topology_aware.nearest_place import nearest_place
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, grant_of
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.policy.topology_aware.take import check_memory, take, take_again
from nri_resmgr.values import NO_NODES, Bytes, MilliCpus, NodeSet, PolicyError


class FormerGrant(msgspec.Struct, frozen=True):
    """A former grant of CPUs with its memory nodes; no nodes where these may change.

    Attributes:
        is_recent: Whether the container runs there; else it has moved since.
    """

    grant: Grant
    zone: NodeSet = NO_NODES
    is_recent: bool = True


class PoolPlacement(msgspec.Struct, frozen=True):
    """A placement of a container, with its effects on others.

    Attributes:
        memory: The memory of all containers, this one included.
        moved: Ids of other containers that get more memory nodes.
        displaced: New grants of other containers, which make way.
        decided: The criterion that ranked the pool before the next.
        tried: Better pools that failed, with the sentence that says why.
    """

    rule: Rule
    grant: Grant
    memory: MemoryLedger
    moved: tuple[str, ...] = ()
    decided: str = ""
    detail: str = ""
    tried: tuple[tuple[str, str], ...] = ()
    displaced: tuple[Grant, ...] = ()

    @property
    def pool_id(self) -> int:
        """That of its grant."""
        return self.grant.pool

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Its grant."""
        return (self.grant,)

    def displacing(self, displaced: tuple[Grant, ...]) -> Self:
        """Return it with new grants of others, which make way."""
        return replace(self, displaced=displaced)

    @property
    def affected(self) -> tuple[str, ...]:
        """Ids of other containers whose pins change by it."""
        return (*self.moved, *(grant.container for grant in self.displaced))


def place(
    demand: Demand,
    view: NodeView,
    offers: Iterable[FormerGrant] = (),
    advise: Callable[[PolicyError], None] | None = None,
) -> PoolPlacement:
    """Find a place for a new container, at the first legal one of *offers* if any.

    *advise* adds to an error what would help.

    Raises:
        PolicyError: No pool can take it, and the settings or its annotations
            demand a refusal.
    """
    for offer in offers:
        if found := keep_place(demand, offer, view, Rule.OLD_PLACE):
            return found
    try:
        return find_place(demand, view)
    except PolicyError as error:
        if advise:
            advise(error)
        strict = demand.require_isolated or demand.spec.preferences.strict_hints
        if view.settings.on_failure is OnFailure.REFUSE or strict:
            raise
        return fall_back(demand, view, str(error))


def find_place(demand: Demand, view: NodeView) -> PoolPlacement:
    """Find a place in the best pool that can take a container.

    Others that share CPUs make way where nothing else helps: those without a request,
    and for exclusive CPUs those with one. They would have been placed elsewhere, had
    they come later.

    Raises:
        PolicyError: No pool can take it.
    """
    if demand.kind in AT_ROOT:
        return _at_root(demand, view)
    if demand.kind is CpuKind.CLAIMED:
        return _with_claim(demand, view)
    return nearest_place(demand, view, partial(_find_free_place, demand))


def _find_free_place(demand: Demand, view: NodeView) -> PoolPlacement:
    tried: list[Failure] = []
    short: MemoryShort | None = None
    for candidate in candidates(demand, view):
        decided, pool = str(candidate.decided), candidate.pool
        try:
            if short is None:
                return place_in_pool(demand, pool, view, decided=decided, tried=tried)
            take(demand, pool, view)
            tried.append((pool.name, short))  # the same in all pools: `MemoryOffers`
        except MemoryShort as error:
            short = error
            tried.append((pool.name, error))
        except PolicyError as error:
            tried.append((pool.name, error))
    root = view.tree.root
    if demand.kind is CpuKind.SHARED and (
        not demand.fraction or _may_be_reserved(demand, view)
    ):
        # Without a request a container may run where all CPU is granted.
        if not view.pool_ledger.free_sharable(root):
            return fall_back(demand, view, "no CPU is left to share")
        try:
            return place_in_pool(demand, root, view, decided="crowd")
        except PolicyError as error:
            tried.append((root.name, error))
    raise refusal(demand, view, tried)


def _may_be_reserved(demand: Demand, view: NodeView) -> bool:
    """Return whether a container may share the reserved CPUs, as there are no others.

    They are counted like shared ones then: what they cannot grant is refused.
    """
    sharable, free = view.tree.root.sharable, view.pool_ledger.free_reserved
    return not sharable and demand.fraction <= free


def keep_place(
    demand: Demand, former: FormerGrant, view: NodeView, rule: Rule
) -> PoolPlacement | None:
    """Place a container exactly as in a former grant, or not at all.

    The grant is its own, or that of its predecessor, and must be legal and for the same
    demand; *rule* is the one to report.
    """
    grant = former.grant
    if (grant.kind, grant.fraction) != (demand.kind, demand.fraction):
        return None
    pool = view.tree.pools[grant.pool]
    request = request_of(demand.spec, pool, view.tree)
    try:
        if demand.kind is CpuKind.CLAIMED:
            return replace(_with_claim(demand, view, former.zone), rule=rule)
        if demand.kind in AT_ROOT:
            found = _at_root(demand, view, former.zone)
            fell_back = found.rule is not demand.rule
            return None if fell_back else replace(found, rule=rule)
        taken = take_again(demand, grant.cpus, pool, view)
        offer = offer_same_memory(request, former.zone, view.memory)
        # A running container keeps its place even where its memory had to be widened.
        if rule is Rule.OLD_PLACE:
            check_memory(demand, offer.zone, pool)
    except PolicyError:
        return None
    return _placement(rule, taken, offer)


def resize(
    demand: Demand, former: FormerGrant, view: NodeView, before: ContainerSpec
) -> PoolPlacement:
    """Find a place for a running container that asks for other amounts than *before*.

    It keeps its pool and its CPUs where the pool can grant the new amounts, else it
    moves. It keeps its memory nodes in any case.

    Raises:
        PolicyError: No pool can take it; its former grant still holds.
    """
    if demand.kind in AT_ROOT:
        return _with_nodes(former.zone, _at_root(demand, view, former.zone))
    if demand.kind is CpuKind.CLAIMED:
        found = _with_claim(demand, view, former.zone)
        rule = _rule_in_place(before, demand.spec)
        return _with_nodes(former.zone, replace(found, rule=rule))
    return nearest_place(demand, view, partial(_resize, demand, former, before))


def _resize(
    demand: Demand, former: FormerGrant, before: ContainerSpec, view: NodeView
) -> PoolPlacement:
    stay = view.tree.pools[former.grant.pool]
    tried: list[Failure] = []
    for pool in chain((stay,), (one.pool for one in candidates(demand, view))):
        try:
            grant, level = take(demand, pool, view, former.grant.cpus)
            request = request_of(demand.spec, pool, view.tree)
            zone = former.zone
            if pool is not stay:
                zone |= view.tree.nodes_of(pool, request.kinds)
            offer = offer_same_memory(request, zone, view.memory)
        except PolicyError as error:
            tried.append((pool.name, error))
            continue
        rule = Rule.MOVED
        if _is_in_place(former.grant, grant):
            rule = _rule_in_place(before, demand.spec)
        found = _placement(rule, grant, offer)
        return replace(found, detail=level, tried=failure_texts(tried))
    if demand.kind is CpuKind.SHARED and _may_be_reserved(demand, view):
        found = fall_back(demand, view, "no CPU is left to share")
        return _with_nodes(former.zone, found)
    raise refusal(demand, view, tried)


def place_again(demand: Demand, former: FormerGrant, view: NodeView) -> PoolPlacement:
    """Find a better place for a running container that fell back, or its former one.

    It keeps its memory nodes in any case, as it has memory there.
    """
    try:
        found = find_place(demand, view)
    except PolicyError as error:
        found = fall_back(demand, view, str(error))
    found = _with_nodes(former.zone, found)
    if not found.grant.fell_back:
        found = replace(found, rule=Rule.NOW_FITS)
    return found


def move_to(
    pool: Pool, demand: Demand, former: FormerGrant, view: NodeView
) -> PoolPlacement:
    """Place a running container in another pool.

    It keeps its memory nodes besides, as it has memory there.

    Raises:
        PolicyError: The pool cannot take it.
    """
    return _with_nodes(former.zone, place_in_pool(demand, pool, view))


def fall_back(demand: Demand, view: NodeView, why: str) -> PoolPlacement:
    """Place a container on shared CPUs even if they do not suffice.

    It is accounted with the rest of the shared CPUs, or of the reserved ones where
    none is shared, and without memory where that is short.

    Raises:
        PoolShort: No CPU is shared or reserved.
    """
    root, ledger = view.tree.root, view.pool_ledger
    kind, free_capacity = CpuKind.SHARED, ledger.free_capacity(root)
    if demand.kind is CpuKind.PRESERVED:
        kind, free_capacity = CpuKind.PRESERVED, 0  # only its memory can be short
    elif not ledger.free_sharable(root):
        kind, free_capacity = CpuKind.RESERVED, ledger.free_reserved
    if not root.reserved and kind is CpuKind.RESERVED:
        raise PoolShort(root.name, f"no CPU is left to share; {why}")
    fraction = MilliCpus(max(0, min(demand.spec.request, free_capacity)))
    claimed = _grant_by_claim(demand, view)
    if claimed.cpus:  # only its memory can be short
        found = _placement(Rule.FELL_BACK, claimed, _some_memory(demand, view))
        return replace(found, grant=replace(claimed, fell_back=True), detail=why)
    grant = replace(_shared_at_root(demand, kind, fraction, view), fell_back=True)
    return replace(
        _placement(Rule.FELL_BACK, grant, _some_memory(demand, view)), detail=why
    )


def _some_memory(demand: Demand, view: NodeView) -> MemoryOffer:
    """Offer the present nodes of a running container, or else those of the node.

    What does not fit there is not accounted.
    """
    root, spec, memory = view.tree.root, demand.spec, view.memory
    here = spec.present.mems
    # A cheap check first: on a full node, each failed offer sums up all requests.
    if size_of(spec) <= memory.available(root.nodes):
        with suppress(PolicyError):
            request = request_of(spec, root, view.tree)
            return offer_same_memory(request, here, memory)
    nothing = replace(spec, memory_request=Bytes(0), memory_limit=None, hugepages=())
    return offer_same_memory(request_of(nothing, root, view.tree), here, memory)


def _shared_at_root(
    demand: Demand, kind: CpuKind, fraction: MilliCpus, view: NodeView
) -> Grant:
    return Grant(
        container=demand.spec.id,
        kind=kind,
        pool=view.tree.root.id,
        fraction=fraction,
        hidden=bool(demand.spec.preferences.hide_hyperthreads),
    )


def place_in_pool(
    demand: Demand,
    pool: Pool,
    view: NodeView,
    *,
    decided: str = "",
    tried: Sequence[Failure] = (),
) -> PoolPlacement:
    """Place a container in one pool, after better ones were *tried*.

    Raises:
        PolicyError: The pool cannot take it.
    """
    grant, level = take(demand, pool, view)
    offer = offer_memory(demand.spec, pool, view.tree, view.memory)
    check_memory(demand, offer.zone, pool)
    rule = demand.rule
    if demand.isolated and grant.cpus <= pool.isolated and demand.count:
        rule = Rule.ISOLATED_CPU
    moved, failed = _moved(offer), failure_texts(tried) if tried else ()
    return PoolPlacement(rule, grant, offer.ledger, moved, decided, level, failed)


def _at_root(demand: Demand, view: NodeView, zone: NodeSet = NO_NODES) -> PoolPlacement:
    """Grant reserved CPUs, or shared ones if these are full; preserve the preserved."""
    root = view.tree.root
    kind = demand.kind
    if kind is CpuKind.RESERVED and view.pool_ledger.free_reserved < demand.fraction:
        return _beside_reserved(demand, view)
    fraction = demand.fraction if kind is CpuKind.RESERVED else MilliCpus(0)
    grant = _shared_at_root(demand, kind, fraction, view)
    request = request_of(demand.spec, root, view.tree)
    offer = offer_same_memory(request, zone, view.memory)
    return _placement(demand.rule, grant, offer)


def _with_claim(
    demand: Demand, view: NodeView, zone: NodeSet = NO_NODES
) -> PoolPlacement:
    """Place a container on the CPUs of its claims, with memory near them."""
    grant = _grant_by_claim(demand, view)
    pool = view.tree.pools[grant.pool]
    if not grant.cpus:
        raise PoolShort(pool.name, f"CPU {demand.spec.claimed} of its claim is offline")
    request = request_of(demand.spec, pool, view.tree)
    return _placement(demand.rule, grant, offer_same_memory(request, zone, view.memory))


def _grant_by_claim(demand: Demand, view: NodeView) -> Grant:
    cpus = demand.spec.claimed & view.tree.root.cpus
    return grant_of(demand, view.tree.smallest_with(cpus), cpus)


def _with_nodes(zone: NodeSet, found: PoolPlacement) -> PoolPlacement:
    """Add the present memory nodes of a container, since it has memory there."""
    offer = grow_memory(found.grant.container, found.memory, nodes=zone)
    return replace(found, memory=offer.ledger)


def _beside_reserved(demand: Demand, view: NodeView) -> PoolPlacement:
    """Place a container on the shared CPUs of the root, as the reserved ones are full.

    Source:
        nri-plugins, topology-aware: the same fallback.
    """
    shared = replace(demand, kind=CpuKind.SHARED, rule=Rule.RESERVED_FULL)
    try:
        found = place_in_pool(shared, view.tree.root, view, decided="only-one")
    except PolicyError:
        found = find_place(shared, view)  # refuses if it has a request
    return replace(found, grant=replace(found.grant, fell_back=True))


def _is_in_place(old: Grant, new: Grant) -> bool:
    within = new.cpus <= old.cpus or old.cpus <= new.cpus
    return new.pool == old.pool and within


def _rule_in_place(before: ContainerSpec, spec: ContainerSpec) -> Rule:
    # A resize of several amounts comes in several updates: memory first if it grows.
    old, new = _amounts(before), _amounts(spec)
    if old == new:
        return Rule.UNCHANGED
    return Rule.GROWN_IN_PLACE if new > old else Rule.SHRUNK_IN_PLACE


def _amounts(spec: ContainerSpec) -> tuple[int, int]:
    """Return the CPUs and memory of a container; the first that differ count."""
    return spec.request, size_of(spec)


def _placement(rule: Rule, grant: Grant, offer: MemoryOffer) -> PoolPlacement:
    return PoolPlacement(rule, grant, offer.ledger, _moved(offer))


def _moved(offer: MemoryOffer) -> tuple[str, ...]:
    return tuple([one.id for one in offer.moved]) if offer.widened else ()
