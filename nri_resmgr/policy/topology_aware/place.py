"""Where a container goes: the first pool in the order of choice that can take it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import msgspec

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.mems import MemoryLedger, MemoryOffer, grow_memory
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand
from nri_resmgr.policy.topology_aware.errors import (
    Failures,
    PoolShort,
    in_words,
    refusal,
)
from nri_resmgr.policy.topology_aware.memory import (
    promise,
    promise_again,
    request_of,
)
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import Room
from nri_resmgr.policy.topology_aware.take import check_memory, retake, take
from nri_resmgr.values import NO_NODES, Bytes, MilliCpus, NodeSet, PolicyError


class Earlier(msgspec.Struct, frozen=True):
    """A grant that was, with its memory nodes; none of these where they may change."""

    grant: Grant
    zone: NodeSet = NO_NODES


class Placement(msgspec.Struct, frozen=True):
    """A place found, with what it means for the others.

    Attributes:
        rule: Why a place of this kind.
        grant: What the container gets of the CPUs.
        memory: What all have of the memory then.
        moved: Ids of others whose memory nodes become more.
        decided: What told the pool from the last one that was as good.
        detail: What else there is to say.
        tried: Better pools that failed, with the sentence that says why.
    """

    rule: Rule
    grant: Grant
    memory: MemoryLedger
    moved: tuple[str, ...] = ()
    decided: str = ""
    detail: str = ""
    tried: tuple[tuple[str, str], ...] = ()


def place(demand: Demand, room: Room, offers: Iterable[Earlier] = ()) -> Placement:
    """Find a place for a container that has none.

    Args:
        demand: What it asks for.
        room: The node without it.
        offers: Places to take as they are, best first, where they are legal.

    Raises:
        PolicyError: No pool can take it, and the settings or its annotations say
            to refuse.
    """
    for offer in offers:
        if found := as_it_was(demand, offer, room, Rule.OLD_PLACE):
            return found
    try:
        return find(demand, room)
    except PolicyError as error:
        strict = demand.require_isolated or demand.spec.preferences.strict_hints
        if room.settings.on_failure is OnFailure.REFUSE or strict:
            raise
        return fall_back(demand, room, str(error))


def find(demand: Demand, room: Room) -> Placement:
    """Find a place by the order of choice.

    Raises:
        PolicyError: No pool can take it.
    """
    if demand.kind in AT_ROOT:
        return _at_root(demand, room)
    tried: Failures = []
    for candidate in candidates(demand, room):
        try:
            decided, pool = str(candidate.decided), candidate.pool
            return within(demand, pool, room, decided=decided, tried=in_words(tried))
        except PolicyError as error:
            tried.append((candidate.pool.name, error))
    root = room.tree.root
    if demand.kind is CpuKind.SHARED and not (demand.fraction and root.sharable):
        # Who asks for nothing may crowd in where everything is promised, and on a
        # machine where all CPUs are reserved everybody has to.
        if not room.books.free_sharable(root):
            return fall_back(demand, room, "no CPU is left to share")
        try:
            return within(demand, root, room, decided="crowd")
        except PolicyError as error:
            tried.append((root.name, error))
    raise refusal(demand, room, tried)


def as_it_was(
    demand: Demand, earlier: Earlier, room: Room, rule: Rule
) -> Placement | None:
    """Place a container as another grant was, to the letter, if that is legal.

    Args:
        demand: What it asks for.
        earlier: Its own grant or its predecessor's.
        room: The node without it.
        rule: The rule to give as the reason.

    Returns:
        None where it asks for something else, or the CPUs are not free.
    """
    grant = earlier.grant
    if (grant.kind, grant.fraction) != (demand.kind, demand.fraction):
        return None
    pool = room.tree.pools[grant.pool]
    request = request_of(demand.spec, pool, room.tree)
    try:
        if demand.kind in AT_ROOT:
            found = _at_root(demand, room, earlier.zone)
            return (
                msgspec.structs.replace(found, rule=rule)
                if found.rule is demand.rule
                else None
            )
        taken = retake(demand, grant.cpus, pool, room)
        offer = promise_again(request, earlier.zone, room.memory)
        if rule is Rule.OLD_PLACE:  # who runs already goes on, wherever others push it
            check_memory(demand, offer.zone, pool)
    except PolicyError:
        return None
    return _placement(rule, taken, offer)


def move(demand: Demand, earlier: Earlier, room: Room) -> Placement:
    """Find a place for a container that runs and asks for other amounts now.

    It stays in its pool if that can give them, with the CPUs that it has, else it
    moves. It keeps the memory nodes that it has.

    Raises:
        PolicyError: No pool can take it; its earlier grant still holds.
    """
    if demand.kind in AT_ROOT:
        return _keeping(earlier.zone, _at_root(demand, room, earlier.zone))
    stay = room.tree.pools[earlier.grant.pool]
    tried: Failures = []
    for pool in chain((stay,), (one.pool for one in candidates(demand, room))):
        try:
            grant, level = take(demand, pool, room, earlier.grant.cpus)
            request = request_of(demand.spec, pool, room.tree)
            zone = earlier.zone
            if pool is not stay:
                zone |= room.tree.nodes_of(pool, request.kinds)
            offer = promise_again(request, zone, room.memory)
        except PolicyError as error:
            tried.append((pool.name, error))
            continue
        rule = _rule_of_move(earlier.grant, grant)
        found = _placement(rule, grant, offer)
        return msgspec.structs.replace(found, detail=level, tried=in_words(tried))
    if demand.kind is CpuKind.SHARED and not room.tree.root.sharable:
        found = fall_back(demand, room, "no CPU is left to share")
        return _keeping(earlier.zone, found)
    raise refusal(demand, room, tried)


def fall_back(demand: Demand, room: Room, why: str) -> Placement:
    """Let a container run with what is shared, whether that is enough or not.

    It counts for what is left of the shared CPUs, of the reserved ones where there
    are none, and for no memory where there is not enough.

    Raises:
        PoolShort: There is no CPU that it could share.
    """
    root, books = room.tree.root, room.books
    kind, spare = CpuKind.SHARED, books.spare(root)
    if demand.kind is CpuKind.PRESERVED:
        kind, spare = CpuKind.PRESERVED, 0  # only its memory can be wanting
    elif not books.free_sharable(root):
        kind, spare = CpuKind.RESERVED, books.spare_reserved
    if not root.reserved and kind is CpuKind.RESERVED:
        raise PoolShort(root.name, f"no CPU is left to share; {why}")
    fraction = MilliCpus(max(0, min(demand.spec.request, spare)))
    grant = _shared_at_root(demand, kind, fraction, room)
    return msgspec.structs.replace(
        _placement(Rule.FELL_BACK, grant, _some_memory(demand, room)), detail=why
    )


def _some_memory(demand: Demand, room: Room) -> MemoryOffer:
    root, spec = room.tree.root, demand.spec
    try:
        return promise(spec, root, room.tree, room.memory)
    except PolicyError:
        nothing = msgspec.structs.replace(
            spec, memory_request=Bytes(0), memory_limit=None, hugepages=()
        )
        return promise(nothing, root, room.tree, room.memory)


def _shared_at_root(
    demand: Demand, kind: CpuKind, fraction: MilliCpus, room: Room
) -> Grant:
    return Grant(
        container=demand.spec.id,
        kind=kind,
        pool=room.tree.root.id,
        fraction=fraction,
        hidden=bool(demand.spec.preferences.hide_hyperthreads),
    )


def within(
    demand: Demand,
    pool: Pool,
    room: Room,
    *,
    decided: str = "",
    tried: tuple[tuple[str, str], ...] = (),
) -> Placement:
    """Place a container in one pool; `Placement` tells what the last two are.

    Raises:
        PolicyError: The pool cannot take it.
    """
    grant, level = take(demand, pool, room)
    offer = promise(demand.spec, pool, room.tree, room.memory)
    check_memory(demand, offer.zone, pool)
    rule = demand.rule
    if demand.isolated and grant.cpus <= pool.isolated and demand.count:
        rule = Rule.ISOLATED_CPU
    return Placement(rule, grant, offer.ledger, _moved(offer), decided, level, tried)


def _at_root(demand: Demand, room: Room, zone: NodeSet = NO_NODES) -> Placement:
    """Grant reserved CPUs, or leave all as it is; shared ones if nothing is left."""
    root = room.tree.root
    rule, kind = demand.rule, demand.kind
    if kind is CpuKind.RESERVED and room.books.spare_reserved < demand.fraction:
        return _beside_reserved(demand, room)
    fraction = demand.fraction if kind is CpuKind.RESERVED else MilliCpus(0)
    grant = _shared_at_root(demand, kind, fraction, room)
    request = request_of(demand.spec, root, room.tree)
    return _placement(rule, grant, promise_again(request, zone, room.memory))


def _keeping(zone: NodeSet, found: Placement) -> Placement:
    """Add the memory nodes that a container has already: it has memory there."""
    offer = grow_memory(found.grant.container, found.memory, nodes=zone)
    return msgspec.structs.replace(found, memory=offer.ledger)


def _beside_reserved(demand: Demand, room: Room) -> Placement:
    """Let a container that the reserved CPUs cannot hold share those of the root.

    Source:
        nri-plugins, topology-aware: the same fallback.
    """
    shared = msgspec.structs.replace(
        demand, kind=CpuKind.SHARED, rule=Rule.RESERVED_FULL
    )
    try:
        return within(shared, room.tree.root, room, decided="only-one")
    except PolicyError:
        return find(shared, room)  # no pool has more: it crowds in, or is refused


def _rule_of_move(old: Grant, new: Grant) -> Rule:
    if new.pool != old.pool or not (new.cpus <= old.cpus or old.cpus <= new.cpus):
        return Rule.MOVED
    grown = (len(new.cpus), new.fraction) > (len(old.cpus), old.fraction)
    return Rule.GROWN_IN_PLACE if grown else Rule.SHRUNK_IN_PLACE


def _placement(rule: Rule, grant: Grant, offer: MemoryOffer) -> Placement:
    return Placement(rule, grant, offer.ledger, _moved(offer))


def _moved(offer: MemoryOffer) -> tuple[str, ...]:
    return tuple([one.id for one in offer.moved]) if offer.widened else ()
