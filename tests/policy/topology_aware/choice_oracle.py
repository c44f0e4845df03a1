"""The order of pools, compared two by two and straight from the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod

import attrs
import msgspec

from nri_resmgr.policy.cpus import CpuPriority, machine_priorities
from nri_resmgr.policy.mems import MemoryOffer, allocate_memory
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.memory import request_of
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import CoreKind, MemoryKind, Node
from nri_resmgr.values import Bytes, NodeSet, PolicyError, QosClass
from tests.policy.topology_aware.hint_oracle import near, score

FINENESS = list(TreeLevel)
EXTREMES = (CpuPriority.HIGH, CpuPriority.LOW)

Verdict = tuple[int, str]
"""Above 0 where the first pool is better, and the stage that decided."""


@attrs.frozen(eq=False)
class Referee:
    """Judges two pools at a time for one container."""

    demand: Demand
    view: NodeView
    offers: dict[int, MemoryOffer | None] = attrs.field(factory=dict)

    def admits(self, pool: Pool) -> bool:
        """Return whether the pool has what is demanded."""
        demand = self.demand
        fits = self.shared_left(pool) >= 0 and self.shared(pool) >= 1
        if demand.require_isolated:
            fits = False
        if self.takes_isolated(pool):
            fits = True
        return fits and self.obeys_hints(pool)

    def obeys_hints(self, pool: Pool) -> bool:
        demand = self.demand
        if not demand.spec.preferences.strict_hints:
            return True
        machine = self.view.tree.machine
        inside = set(machine.online)
        for hint in demand.spec.hints:
            inside &= set(near(hint, self.view)) or inside
        shares = demand.fraction or not demand.count
        if shares and set(pool.sharable) - inside:
            return False
        taken = set(self.view.pool_ledger.taken)
        isolated = (set(pool.isolated) - taken) & inside
        if demand.isolated and len(isolated) >= demand.count:
            return True
        sharable = (set(pool.sharable) - taken) & inside
        return not demand.require_isolated and len(sharable) >= demand.count

    def judge(self, a: Pool, b: Pool) -> Verdict:
        for criterion, better in self.stages(a, b):
            if better:
                return better, criterion
        raise AssertionError((a.name, b.name))

    def stages(self, a: Pool, b: Pool) -> Iterator[tuple[str, int]]:
        """Yield what each stage says; 0 where both are alike."""
        yield "isolated-cpus", self.by(self.takes_isolated, a, b)
        yield "affinity", self.by(self.affinity_weights, a, b)
        if self.demand.spec.hints:
            yield from self.by_hints(a, b)
        yield from self.by_memory(a, b)
        spec = self.demand.spec
        if spec.qos is QosClass.BURSTABLE:
            if not spec.limit:
                yield from self.by_level(a, b)
                return
            limit = spec.limit
            yield (
                "burstable-limit",
                self.by(lambda pool: min(self.shared(pool), limit), a, b),
            )
        if self.demand.count and spec.preferences.cpu_priority in EXTREMES:
            yield "cpu-priority", self.by(self.has_priority, a, b)
        yield (
            "fewer-nodes",
            self.by(lambda pool: -width(self.zone(pool), self.view), a, b),
        )
        if spec.preferences.memory_kinds:
            yield "memory-kinds", self.by(self.has_kinds, a, b)
        yield from self.by_cpus(a, b)

    @staticmethod
    def by(merit: Callable[[Pool], int | bool | Fraction], a: Pool, b: Pool) -> int:
        return (merit(a) > merit(b)) - (merit(a) < merit(b))

    def by_hints(self, a: Pool, b: Pool) -> Iterator[tuple[str, int]]:
        scores = {
            pool.id: [score(hint, pool, self.view) for hint in self.demand.spec.hints]
            for pool in (a, b)
        }
        yield "hints", self.by(lambda pool: prod(scores[pool.id]), a, b)
        some = {key: [one for one in row if one] for key, row in scores.items()}
        matched = {key: prod(row) if row else 0 for key, row in some.items()}
        yield "hints", self.by(lambda pool: matched[pool.id], a, b)
        if matched[a.id]:
            yield "depth", a.depth - b.depth
            yield "id", b.id - a.id

    def by_memory(self, a: Pool, b: Pool) -> Iterator[tuple[str, int]]:
        spec, machine = self.demand.spec, self.view.tree.machine
        yield "memory-offer", self.by(self.fits_untouched, a, b)
        yield "memory-offer", self.by(lambda one: self.offer(one) is not None, a, b)
        if spec.preferences.memory_kinds:
            wanted = self.wanted()
            yield (
                "memory-kinds",
                self.by(
                    lambda one: kinds_in(self.zone(one), self.view) == wanted, a, b
                ),
            )
        size = spec.memory_request or spec.memory_limit
        if not size or size == spec.memory_limit:
            return
        capacity = {
            one.id: sum(ordinary(machine.node(node)) for node in self.start(one))
            for one in (a, b)
        }
        criterion = "memory-capacity-for-limit"
        if (limit := spec.memory_limit) is not None:
            yield criterion, self.by(lambda one: min(capacity[one.id], limit), a, b)
        elif spec.limit:
            yield criterion, self.by(lambda one: capacity[one.id], a, b)

    def by_level(self, a: Pool, b: Pool) -> Iterator[tuple[str, int]]:
        asked = self.demand.spec.preferences.unlimited_burstable
        wanted = FINENESS.index(asked or self.view.settings.unlimited_burstable)
        there = [FINENESS.index(pool.level) for pool in self.view.tree.pools]
        at = max((one for one in there if one <= wanted), default=min(there))
        mine, its = FINENESS.index(a.level), FINENESS.index(b.level)
        criterion = "burstable-level"
        yield criterion, (mine == at) - (its == at)
        if mine == its == at:
            yield "spread", self.by(self.shared, a, b)
        else:
            yield criterion, (mine > at) - (its > at)
        yield "id", b.id - a.id

    def by_cpus(self, a: Pool, b: Pool) -> Iterator[tuple[str, int]]:
        demand, pool_ledger = self.demand, self.view.pool_ledger
        whole = demand.count > 0
        unasked = demand.spec.preferences.cpu_priority is None
        if whole and unasked and self.preferred in EXTREMES:
            yield "cpu-priority", self.by(self.has_priority, a, b)
        yield "depth", a.depth - b.depth
        if whole and self.preferred is not CpuPriority.ANY:
            yield "cpu-priority", self.by(self.of_priority, a, b)
        if whole and self.takes_isolated(a):
            yield (
                "spread",
                self.by(lambda one: len(pool_ledger.free_isolated(one)), a, b),
            )
        elif whole:
            yield "spread", self.by(self.shared_left, a, b)
            yield "fewer-touched", self.by(lambda one: -self.touched(one), a, b)
        else:
            yield "colocation", self.by(lambda one: -self.colocated(one), a, b)
            yield "spread", self.by(self.shared_left, a, b)
        yield "id", b.id - a.id

    def shared(self, pool: Pool) -> int:
        """Recount what a pool and those above it can grant of shared CPUs."""
        pools, grants = self.view.tree.pools, self.view.grants.values()
        left = []
        for above in (pools[one] for one in pool.path):
            inside = [one for one in grants if one.pool in above.subtree and one.shares]
            idle = any(not one.fraction for one in inside)
            cpus = len(set(above.sharable) - self.taken())
            asked = sum(one.fraction for one in inside)
            # Not upstream's sum of both: a request keeps the pool alive.
            left.append(1000 * cpus - (asked or idle))
        return min(left)

    def taken(self) -> set[int]:
        return {cpu for one in self.view.grants.values() for cpu in one.cpus}

    def takes_isolated(self, pool: Pool) -> bool:
        demand = self.demand
        free = len(set(pool.isolated) - self.taken())
        rest = not demand.fraction or self.shared(pool) >= demand.fraction
        return demand.isolated and free >= demand.count and rest

    def shared_left(self, pool: Pool) -> int:
        return self.shared(pool) - 1000 * self.demand.count - self.demand.fraction

    def has_priority(self, pool: Pool) -> bool:
        return self.of_priority(pool) == self.needed

    @property
    def needed(self) -> int:
        return 1000 * self.demand.count + self.demand.fraction

    def of_priority(self, pool: Pool) -> int:
        if self.takes_isolated(pool):
            return self.needed
        sets = machine_priorities(self.view.tree.machine)
        high, low = set(sets.high), set(sets.low)
        kinds = {core.kind for core in self.view.tree.machine.cores}
        fast = set(self.view.tree.machine.cpus_of_kind(CoreKind.PERFORMANCE))
        free = set(pool.sharable) - self.taken()
        of_class = {
            CpuPriority.HIGH: free & (fast if len(kinds) > 1 else high),
            CpuPriority.LOW: free & low,
            CpuPriority.NORMAL: free - high - low,
        }
        return min(1000 * len(of_class[self.preferred]), self.needed)

    @property
    def preferred(self) -> CpuPriority:
        """The priority asked for, or by default; else fast ones where some are not."""
        asked, usual = self.demand.spec.preferences.cpu_priority, self.demand.priority
        kinds = {core.kind for core in self.view.tree.machine.cores}
        if asked is None and usual is CpuPriority.ANY and len(kinds) > 1:
            return CpuPriority.HIGH
        return usual

    def colocated(self, pool: Pool) -> int:
        grants = self.view.grants.values()
        outside = (CpuKind.RESERVED, CpuKind.PRESERVED)
        return sum(one.pool == pool.id and one.kind not in outside for one in grants)

    def touched(self, pool: Pool) -> int:
        return sum(
            one.shares and (one.pool in pool.path or one.pool in pool.subtree)
            for one in self.view.grants.values()
        )

    def affinity_weights(self, pool: Pool) -> Fraction:
        """Colocation of pods is all the affinity that these tests have."""
        total, pools = Fraction(0), self.view.tree.pools
        if not self.view.settings.colocate_pods:
            return total
        for key, grant in self.view.grants.items():
            same = self.view.ledger.spec_of(key).pod == self.demand.spec.pod
            if same and (grant.pool in pool.path or grant.pool in pool.subtree):
                far = abs(pools[grant.pool].depth - pool.depth)
                total += Fraction(3, 4) ** far
        return total

    def offer(self, pool: Pool) -> MemoryOffer | None:
        if pool.id not in self.offers:
            request = request_of(self.demand.spec, pool, self.view.tree)
            try:
                self.offers[pool.id] = allocate_memory(request, self.view.memory)
            except PolicyError:
                self.offers[pool.id] = None
        return self.offers[pool.id]

    def fits_untouched(self, pool: Pool) -> bool:
        offer = self.offer(pool)
        return offer is not None and not offer.widened

    def start(self, pool: Pool) -> NodeSet:
        """Return what it would get on an empty node."""
        request = msgspec.structs.replace(
            request_of(self.demand.spec, pool, self.view.tree),
            size=Bytes(0),
            hugepages=(),
        )
        return allocate_memory(request, self.view.memory).zone

    def zone(self, pool: Pool) -> NodeSet:
        offer = self.offer(pool)
        return self.start(pool) if offer is None else offer.zone

    def wanted(self) -> frozenset[MemoryKind]:
        there = kinds_in(self.view.tree.root.nodes, self.view)
        return self.demand.spec.preferences.memory_kinds & there

    def has_kinds(self, pool: Pool) -> bool:
        return self.wanted() <= kinds_in(pool.nodes, self.view)


def ordinary(node: Node) -> int:
    return node.memory - sum(pool.size * pool.count for pool in node.hugepages)


def kinds_in(nodes: NodeSet, view: NodeView) -> frozenset[MemoryKind]:
    return frozenset(view.tree.machine.node(node).kind for node in nodes)


def width(nodes: NodeSet, view: NodeView) -> int:
    kinds = [view.tree.machine.node(node).kind for node in nodes]
    return max(kinds.count(kind) for kind in kinds)
