"""Room on shared CPUs that only containers without a request use."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, PoolLedger
from nri_resmgr.policy.topology_aware.room import exclusive_room
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.values import ONE_CPU


def may_be_in_the_way(demand: Demand, ledger: PoolLedger) -> bool:
    """Return whether only containers without a request can keep a demand from fitting.

    A cheap check: on a full node all attempts fail, most of them for other reasons.
    """
    rows = zip(ledger.shared, ledger.without_request, strict=True)
    # Of these pools at most one CPU each is kept for them.
    idle = [count > 0 and not shared for shared, count in rows]
    if not any(idle):
        return False
    needed, count, bare = demand.capacity, demand.count, ledger.of_requests()
    for pool in ledger.tree.pools:
        kept = sum(idle[one] for one in pool.subtree)
        if not kept or needed > bare.free_capacity(pool):
            continue
        if ledger.free_capacity(pool) - ONE_CPU * kept < needed:
            return True
        # The capacity can be in fractions of which none is a whole CPU.
        if exclusive_room(pool, ledger) < count <= exclusive_room(pool, bare):
            return True
    return False


def movable_grants(view: NodeView) -> list[Grant]:
    """Return the grants of running containers that any CPU suffices for.

    These are the ones without a request. Reserved places are not among them, and nor
    are containers with strict hints, which may be far from the reserved CPUs.
    """
    entries, grants = view.ledger.entries, view.grants
    return [
        grants[key]
        for key, entry in entries.items()
        if key in grants  # not the container that is to be placed
        and grants[key].kind is CpuKind.SHARED
        and not entry.spec.request
        and not entry.spec.preferences.strict_hints
    ]


def rule_of_displaced(grant: Grant) -> Rule:
    """Return the rule of a container that has made way, by its new grant."""
    return Rule.FELL_BACK if grant.fell_back else Rule.MOVED


def without(grants: Sequence[Grant], view: NodeView) -> NodeView:
    """Return a view in which *grants* use no CPUs; their memory stays."""
    ledger = view.pool_ledger
    for grant in grants:
        ledger = ledger.remove(grant)
    return replace(view, pool_ledger=ledger)


def make_way(grants: Sequence[Grant], ledger: PoolLedger) -> tuple[Grant, ...] | None:
    """Return other grants for those whose pools have no shared CPU in *ledger*.

    Each is of the smallest pool around the old one that has any, else of the reserved
    CPUs, which is a fall-back: the container returns when there is room. None if there
    are no reserved CPUs either.
    """
    tree, changed = ledger.tree, []
    for grant in grants:
        path = tree.pools[grant.pool].path
        around = (one for one in path if ledger.free_sharable(tree.pools[one]))
        if (pool := next(around, None)) is None:
            if not tree.root.reserved:
                return None
            reserved, root = CpuKind.RESERVED, tree.root.id
            changed.append(replace(grant, kind=reserved, pool=root, fell_back=True))
        elif pool != grant.pool:
            changed.append(replace(grant, pool=pool))
    return tuple(changed)
