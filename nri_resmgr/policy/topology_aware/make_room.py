"""Room on shared CPUs: containers that use them make way.

Which CPUs of a pool they share makes no difference to its containers, and exclusive
CPUs cannot move. So containers that share make way where one would be refused, or would
get exclusive CPUs that are farther apart:

* Those without a request leave their CPUs: any others suffice for them, at last the
  reserved ones.
* Those with a request share CPUs of a larger pool around their own, for exclusive CPUs
  only; those that have exclusive ones besides keep these. In the root the sum of all
  requests is the same as before, so that no container gets less than its request: what
  is too scattered for whole CPUs is put together.

What it guarantees: exclusive CPUs are not refused for where others share if the root
has the capacity, but for containers whose hints or affinity rules bind them. None falls
below its request, and those with the largest requests are the ones that move, so that
few do.

An example: two nodes of two CPUs, and on each a container that requests half a CPU. Of
the three free CPUs two can be exclusive, as each node keeps one that is shared. For a
container with three exclusive CPUs one of them makes way, to the root, and both share
the CPU that is left.

What was rejected: to move them back when there is room. It would cost as many updates
again; `nri_resmgr.policy.topology_aware.rebalance` does it where a document asks.

Checked by: tests/laws/test_making_way.py and tests/laws/test_pods_making_way.py
(nothing is refused that fits in sum) and tests/laws/test_order_of_arrival.py;
`make quality` measures the effect.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.pool_ledger import SHARING, Grant, PoolLedger
from nri_resmgr.policy.topology_aware.room import exclusive_room
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.policy.whole_pods import PodPlacement
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


def could_be_nearer(demand: Demand, depth: int, ledger: PoolLedger) -> bool:
    """Return whether only sharing containers may keep CPUs from being exclusive.

    A cheap check, as `may_be_in_the_way`.

    Args:
        demand: The demand.
        depth: That of the pool it has without their making way; -1 for none.
        ledger: The grants.
    """
    if not demand.count:
        return False
    bare, needed = ledger.of_requests(), demand.capacity
    root = ledger.tree.root
    # Where it has a place already, its request is a part of what the root has.
    if depth < 0 and bare.free_capacity(root) < needed:
        return False
    return any(
        pool.depth > depth and ledger.sizes[pool.id] >= needed
        for pool in ledger.tree.pools
    )


class Yielding(msgspec.Struct, frozen=True):
    """Grants of running containers that make way.

    Attributes:
        idle: Of those without a request, as `movable_grants` has them.
        sharing: Of those with a request, as `sharing_grants` has them.
    """

    idle: Sequence[Grant]
    sharing: Sequence[Grant] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing makes way."""
        return not self.idle and not self.sharing

    def give_way(self, view: NodeView) -> NodeView:
        """Return a view in which they bind no CPUs of any pool but the root.

        Their memory stays.
        """
        ledger, pools = without(self.idle, view).pool_ledger, view.tree.pools
        for grant in self.sharing:
            ledger = ledger.share(pools[grant.pool].path[:-1], -grant.fraction)
        return replace(view, pool_ledger=ledger)

    def settle(self, ledger: PoolLedger) -> tuple[Grant, ...] | None:
        """Return new grants for those that cannot stay.

        Those with a request move to the smallest pool around their own that has enough;
        the largest of them are the ones that move, so that few do. None if those
        without one have nowhere to go.

        Args:
            ledger: With what they gave way to.
        """
        pools, changed = ledger.tree.pools, []
        for grant in sorted(self.sharing, key=lambda one: one.fraction):
            *below, root = pools[grant.pool].path
            short = [one for one in below if ledger.shortage(one, grant.fraction)]
            inside = below[below.index(short[-1]) + 1 :] if short else below
            ledger = ledger.share(inside, grant.fraction)
            if short:
                changed.append(replace(grant, pool=inside[0] if inside else root))
        displaced = make_way(self.idle, ledger)
        return None if displaced is None else (*changed, *displaced)


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


def sharing_grants(view: NodeView) -> list[Grant]:
    """Return the grants of running containers that may share CPUs of a larger pool.

    Those whose hints or affinity rules chose their pool stay, and those of pods that
    have to be in one pool.
    """
    if view.settings.place_pods is PodPlacement.STRICT:
        return []
    entries, grants, root = view.ledger.entries, view.grants, view.tree.root.id
    return [
        grants[key]
        for key, entry in entries.items()
        if key in grants  # not the container that is to be placed
        and grants[key].kind in SHARING
        and grants[key].fraction
        and grants[key].pool != root
        and not entry.spec.hints
        and not entry.spec.preferences.affinities
    ]


def all_that_share(view: NodeView) -> Yielding:
    """Return the grants of all running containers that may make way."""
    return Yielding(movable_grants(view), sharing_grants(view))


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
