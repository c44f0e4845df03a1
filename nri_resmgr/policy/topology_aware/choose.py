"""Ranking of the pools that may take a container.

`candidates` yields the pools with the capacity for a demand, the best first. `place`
tries them in this order, and the first that can grant CPUs and memory takes the
container. `criteria` has the comparisons. docs/topology-aware.md, "How a pool is
chosen", lists them in their order, with the word that each has in the log.

What it guarantees:

* The order is total, and depends on the demand and the state alone. So the same
  containers in the same order get the same places, in a replay as on the node.
* All pools that could take the container are in it. One that `take` refuses, because a
  pool below would lose CPUs that it has granted, costs a try and nothing else.
* The criterion that decided is known, and `explain` can show the scores of all pools.

How: in each criterion a pool has a score that depends on no other pool, and the last
criterion is the id. So pools are compared as tuples are: the first difference decides.
What must hold (capacity, strict hints) is a filter before, and no criterion. The order
of the criteria is that of nri-plugins; the exceptions are below.

What was rejected:

* nri-plugins' comparison of two pools by a list of conditions (``compareScores``). The
  result of some of its branches depends on which pool comes first, so that the order is
  not total. These branches have no counterpart here.
* To sort all pools. The next one is only searched for when the one before could not
  take the container, and expensive scores are only computed for pools that are equal so
  far.
* Criteria that are true or false where there is an amount. Where no pool had all of a
  CPU limit, all were equal and the smallest won: of twelve containers with a request of
  6 CPUs and a limit of 80, on 128 CPUs, the last four got one cache each. Now pools are
  compared by how much of the limit they have.
* The default CPU priority before the number of memory nodes. All containers have the
  default, and most would leave their nodes for it. Only a priority that the container
  itself asks for goes before.
* To count only containers that share CPUs in `colocation`. A pool that exclusive
  containers nearly fill is a bad place to share, so they count as well.

What it costs: each pool that is tried takes one pass over the pools for each criterion,
up to the one that decides; affinity rules look at all containers in their scope. A
whole CreateContainer takes 0.72 ms among 10 containers and 0.81 among 500, on 112 CPUs
(docs/benchmarks.md, "Topology-aware policy").

Checked by: tests/policy/topology_aware/test_choose_order.py, against an oracle that
compares two pools at a time; tests/laws/test_topology_aware_policy.py (after any
events, no CPU is granted twice and no pool has granted more than it has);
tests/laws/test_odd_machines.py (on any machine, what fits into a NUMA node gets one);
tests/laws/test_order_of_arrival.py (containers without a request make no difference to
those with one); tests/laws/test_asked_priority.py.

An example: two sockets of two NUMA nodes, each with four CPUs and 4 GiB. A container
with 2 CPUs and 3 GiB is there already. The next one wants 3 CPUs and 6 GiB, which no
node has.

>>> from nri_resmgr.policy.events import ContainerSpec, Created
>>> from nri_resmgr.policy.topology_aware.demand import demand_of
>>> from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
>>> from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
>>> from nri_resmgr.topology.synthetic import parse_spec
>>> from nri_resmgr.values import Bytes, CpuSet, MilliCpus, QosClass

>>> def guaranteed(name: str, cpus: int, gib: int) -> ContainerSpec:
...     cpu, memory = MilliCpus(1000 * cpus), Bytes(gib << 30)
...     amounts = {"request": cpu, "limit": cpu}
...     amounts |= {"memory_request": memory, "memory_limit": memory}
...     return ContainerSpec(name, name, qos=QosClass.GUARANTEED, **amounts)

>>> machine = parse_spec("2s2n4c1t memory=4Gi")
>>> settings = TopologyAwareSettings(available=machine.online, reserved=CpuSet.of(0))
>>> policy = TopologyAwarePolicy(machine, settings)
>>> state = policy.decide(policy.start(), Created(guaranteed("web", 2, 3))).state
>>> demand = demand_of(guaranteed("db", 3, 6), settings)
>>> for one in list(candidates(demand, state.view(settings)))[:3]:
...     scores = {str(criterion): score for criterion, score in one.scores()}
...     print(one.pool.name, one.decided, *map(scores.get, ("memory-offer", "depth")))
socket #1 fewer-nodes 1 1
root memory-offer 1 0
NUMA node #2 id 0 2

Socket 1 and the root have room for 6 GiB, and the socket needs fewer nodes for it. A
NUMA node would be deeper in the tree, but its memory would have to be widened, and room
for the memory goes before depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from nri_resmgr.policy.topology_aware.criteria import (
    CAPACITY,
    ONLY_ONE,
    Comparison,
    Criterion,
    comparisons_of,
    has_isolated,
)
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand
from nri_resmgr.policy.topology_aware.hint_scores import cpus_near_all
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import NodeView


class RankedPool(msgspec.Struct, frozen=True):
    """A pool that may take a container.

    *decided* is the criterion that ranks it before the pools after it. Comparisons of
    pools are listed the most important first.
    """

    pool: Pool
    decided: Criterion
    comparisons: Sequence[Comparison] = ()

    def scores(self) -> tuple[tuple[Criterion, int], ...]:
        """Return the pool's score in each criterion, the most important first.

        More is better. Scores that the choice did not need are computed now.
        """
        return tuple(
            (criterion, int(row[self.pool.id])) for criterion, row in self.comparisons
        )


def candidates(demand: Demand, view: NodeView) -> Iterator[RankedPool]:
    """Yield the pools that may take a container, best first.

    Each is computed on demand. Pools without the capacity are left out; `take` checks
    that pools below keep the CPUs that they have granted. Reserved and preserved CPUs
    only exist at the root.
    """
    if demand.kind in AT_ROOT:
        yield RankedPool(view.tree.root, ONLY_ONE)
        return
    enough, pools = _with_capacity(demand, view), view.tree.pools
    if demand.spec.preferences.strict_hints:
        enough = [key for key in enough if _is_inside(demand, pools[key], view)]
    less = len(enough) < len(pools)
    comparisons = comparisons_of(demand, view)
    last = CAPACITY if less else ONLY_ONE
    while enough:
        best, decided = _best_of(enough, comparisons, last)
        yield RankedPool(pools[best], decided, comparisons)
        enough.remove(best)


def _best_of(
    pools: list[int], comparisons: Sequence[Comparison], last: Criterion
) -> tuple[int, Criterion]:
    """Find the best pool, and the criterion that decided against the last rival.

    No two pools are equal in all comparisons. Without a rival the criterion is *last*.
    """
    decided = last
    for criterion, row in comparisons:
        if len(pools) == 1:
            break
        best, most = [pools[0]], row[pools[0]]
        for key in pools[1:]:
            if (score := row[key]) > most:
                best, most = [key], score
            elif score == most:
                best.append(key)
        if len(best) < len(pools):
            pools, decided = best, criterion
    return pools[0], decided


def _with_capacity(demand: Demand, view: NodeView) -> list[int]:
    capacities, needed = view.pool_ledger.free_capacities, demand.capacity
    if not demand.isolated:
        if min(capacities) >= needed:  # as on most nodes
            return list(range(len(capacities)))
        return [key for key, free in enumerate(capacities) if free >= needed]
    return [
        pool.id
        for pool in view.tree.pools
        if has_isolated(demand, pool, view.pool_ledger)
        or (not demand.require_isolated and capacities[pool.id] >= needed)
    ]


def _is_inside(demand: Demand, pool: Pool, view: NodeView) -> bool:
    """Return whether all CPUs can be inside of every hint.

    All sharable CPUs of the pool count, since the shared set changes over time.
    """
    inside = cpus_near_all(demand.spec.hints, view.tree.machine)
    if demand.kind is not CpuKind.EXCLUSIVE and not pool.sharable <= inside:
        return False
    isolated = view.pool_ledger.free_isolated(pool) & inside
    if demand.isolated and len(isolated) >= demand.count:
        return True
    sharable = view.pool_ledger.free_sharable(pool) & inside
    return not demand.require_isolated and len(sharable) >= demand.count
