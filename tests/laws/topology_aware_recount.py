"""What must hold of a state of the topology-aware policy, counted from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.mems import MemoryGrant
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import Bytes, CpuSet, NodeSet, QosClass
from tests.laws.memory_recount import content_of

SHARING = (CpuKind.SHARED, CpuKind.MIXED)
WITH_OWN = (CpuKind.EXCLUSIVE, CpuKind.MIXED)


def pins_by_recount(
    policy: TopologyAwarePolicy, state: TopologyAwareState
) -> dict[str, Pin]:
    """Say where every container belongs, by the definition of each kind of CPUs."""
    found = {}
    for key, entry in state.ledger.entries.items():
        grant, wish = state.grants[key], entry.spec.preferences
        pinned = policy.settings.pin_cpus and grant.kind is not CpuKind.PRESERVED
        pins_memory = policy.settings.pin_memory and not wish.preserve_memory
        found[key] = Pin(
            runs_on(grant, policy, state) if pinned else CpuSet(),
            state.memory.grants[key].zone if pins_memory else NodeSet(),
            _weight(grant) if pinned else 0,
        )
    return found


def runs_on(
    grant: Grant, policy: TopologyAwarePolicy, state: TopologyAwareState
) -> CpuSet:
    cpus = grant.cpus | shared_by(grant, policy, state)
    if not grant.hidden:
        return cpus
    # One thread of each core; its own rather than one that it shares.
    cores = (core.cpus & cpus for core in policy.machine.cores)
    return CpuSet.from_iterable(
        min(threads & grant.cpus or threads) for threads in cores if threads
    )


def shared_by(
    grant: Grant, policy: TopologyAwarePolicy, state: TopologyAwareState
) -> CpuSet:
    """Return the CPUs that a grant shares with others."""
    if grant.kind is CpuKind.RESERVED:
        return policy.settings.reserved
    if grant.kind not in SHARING:
        return CpuSet()
    taken = CpuSet.union(one.cpus for one in state.grants.values())
    return sharable(policy.tree.pools[grant.pool], policy) - taken


def sharable(pool: Pool, policy: TopologyAwarePolicy) -> CpuSet:
    settings = policy.settings
    return pool.cpus & settings.available - settings.reserved - policy.machine.isolated


def check_exclusive(policy: TopologyAwarePolicy, state: TopologyAwareState) -> None:
    """No container runs on another's CPUs, or on those of reserved containers."""
    settings, grants = policy.settings, state.grants.values()
    taken = CpuSet.union(one.cpus for one in grants)
    assert sum(len(one.cpus) for one in grants) == len(taken)
    assert taken <= settings.available - settings.reserved
    for one in grants:
        pool = policy.tree.pools[one.pool]
        isolated = policy.machine.isolated
        assert one.cpus <= pool.cpus
        assert one.cpus <= isolated or one.cpus.isdisjoint(isolated)
        assert bool(one.cpus) == (one.kind in WITH_OWN)
        shared = shared_by(one, policy, state)
        assert shared.isdisjoint(taken)
        assert bool(shared) == (one.kind in (*SHARING, CpuKind.RESERVED))
        if one.kind is not CpuKind.RESERVED:
            assert shared <= settings.available - settings.reserved - isolated


def check_capacity(policy: TopologyAwarePolicy, state: TopologyAwareState) -> None:
    """No CPU's time is granted twice, also not by fallbacks."""
    grants = state.grants.values()
    taken = CpuSet.union(one.cpus for one in grants)
    for pool in policy.tree.pools:
        promised = sum(
            one.fraction
            for one in grants
            if one.kind in SHARING and policy.tree.pools[one.pool].cpus <= pool.cpus
        )
        assert promised <= 1000 * len(sharable(pool, policy) - taken), pool.name
    reserved = sum(one.fraction for one in grants if one.kind is CpuKind.RESERVED)
    assert reserved <= 1000 * len(policy.settings.reserved)


def check_kind(spec: ContainerSpec, grant: Grant, rule: Rule) -> None:
    """A container has what it asks for, of a kind that is meant for it."""
    wish, given = spec.preferences, 1000 * len(grant.cpus) + grant.fraction
    fell_back = rule is Rule.FELL_BACK
    if grant.kind is CpuKind.PRESERVED:
        assert wish.preserve_cpus
        assert given == 0
        return
    assert not wish.preserve_cpus
    assert given <= spec.request if fell_back else given == spec.request
    in_namespace = spec.namespace == "kube-system" and wish.reserved is None
    if wish.reserved or in_namespace:
        left_out = (Rule.RESERVED_FULL, Rule.FELL_BACK)
        assert grant.kind is CpuKind.RESERVED or rule in left_out
    else:
        assert grant.kind is not CpuKind.RESERVED or fell_back
    if spec.qos is not QosClass.GUARANTEED or wish.shared:
        assert grant.kind not in WITH_OWN
    assert grant.hidden == bool(wish.hide_hyperthreads)


def check_hints(
    policy: TopologyAwarePolicy, state: TopologyAwareState, why: Mapping[str, Rule]
) -> None:
    """Strict hints are obeyed, whatever becomes of the neighbours."""
    for key, entry in state.ledger.entries.items():
        grant, spec = state.grants[key], entry.spec
        free = grant.kind in (CpuKind.RESERVED, CpuKind.PRESERVED)
        if (
            spec.preferences.strict_hints
            and not free
            and why[key] is not Rule.FELL_BACK
        ):
            cpus = runs_on(grant, policy, state)
            assert all(cpus <= hint.cpus for hint in spec.hints if hint.cpus)


def check_books(policy: TopologyAwarePolicy, state: TopologyAwareState) -> None:
    """The sums that are carried on are those of the grants."""
    pool_ledger, grants = state.pool_ledger, state.grants.values()
    reserved_places = {one.id: one for one in state.reserved_places.values()}
    assert {key: one.container for key, one in state.grants.items()} == {
        key: key for key in (*state.ledger.entries, *reserved_places)
    }
    assert all(
        slot == (one.pod, one.name) for slot, one in state.reserved_places.items()
    )
    pools = [pool.id for pool in policy.tree.pools]
    sharing = [one for one in grants if one.kind in SHARING]
    assert pool_ledger.tree is policy.tree
    assert pool_ledger.taken == CpuSet.union(one.cpus for one in grants)
    around = [(pool, g) for g in sharing for pool in policy.tree.pools[g.pool].path]
    shared = ((pool, g.fraction) for pool, g in around)
    assert list(pool_ledger.shared) == _sums(pools, shared)
    idle = ((pool, not g.fraction) for pool, g in around)
    assert list(pool_ledger.without_request) == _sums(pools, idle)
    cpus = (pool.sharable - pool_ledger.taken for pool in policy.tree.pools)
    assert list(pool_ledger.sizes) == [1000 * len(free) for free in cpus]
    container_counts = Counter((one.kind, one.pool) for one in grants)
    assert pool_ledger.container_counts == {
        kind: tuple(container_counts[kind, pool] for pool in pools) for kind in CpuKind
    }
    reserved = (one.fraction for one in grants if one.kind is CpuKind.RESERVED)
    assert pool_ledger.reserved == sum(reserved)


def check_promises(spec: ContainerSpec, grant: MemoryGrant, rule: Rule) -> None:
    """Memory is promised as asked for, or not at all after a fallback."""
    asked = size_by_recount(spec), spec.hugepages
    promised = grant.request.size, grant.request.hugepages
    assert promised == asked or (rule is Rule.FELL_BACK and promised == (0, ()))


def places_waiting(
    state: TopologyAwareState,
    there: Mapping[str, ContainerSpec],
    pods: AbstractSet[str] | None,
) -> dict[tuple[str, str], ContainerSpec]:
    """Return the places whose pods are there, and whose containers are not yet."""
    running = {(one.pod, one.name) for one in there.values()}
    living = None if pods is None else pods | {pod for pod, _ in running}
    return {
        slot: spec
        for slot, spec in state.reserved_places.items()
        if slot not in running and (living is None or slot[0] in living)
    }


def held_grants(
    state: TopologyAwareState,
    waiting: Mapping[tuple[str, str], ContainerSpec] | None = None,
) -> dict[str, tuple[Grant, NodeSet]]:
    """Return what is granted to those that places are held for, or to some of them."""
    ids = [
        one.id
        for one in (state.reserved_places if waiting is None else waiting).values()
    ]
    return {key: (state.grants[key], state.memory.grants[key].zone) for key in ids}


def check_vacated(
    before: TopologyAwareState,
    after: TopologyAwareState,
    there: Mapping[str, ContainerSpec],
    pods: AbstractSet[str] | None,
) -> None:
    """Pods that are there can come back to where they were; others cannot."""
    expected = dict(before.former_places)
    for key, entry in before.ledger.entries.items():
        if key not in there and entry.spec.slot:
            expected[entry.spec.pod, entry.spec.slot] = before.grants[key]
    living = {one.pod for one in there.values()}
    assert after.former_places == {
        slot: grant
        for slot, grant in expected.items()
        if pods is None or slot[0] in pods | living
    }


def is_met(spec: ContainerSpec, state: TopologyAwareState, rule: Rule) -> bool:
    """Return whether a container has all that it asks for."""
    if rule in (Rule.FELL_BACK, Rule.RESERVED_FULL):
        return False
    return state.memory.grants[spec.id].request.size == size_by_recount(spec)


def size_by_recount(spec: ContainerSpec) -> Bytes:
    return spec.memory_request or spec.memory_limit or Bytes(0)


def snapshot(state: TopologyAwareState) -> dict[str, Any]:
    """Write a state down in values that nothing can change later."""
    pool_ledger = state.pool_ledger
    return {
        "ledger": dict(state.ledger.entries),
        "grants": dict(state.grants),
        "books": (
            pool_ledger.taken,
            pool_ledger.shared,
            pool_ledger.without_request,
            pool_ledger.reserved,
        ),
        "guests": dict(pool_ledger.container_counts),
        "memory": dict(state.memory.grants),
        "accounts": content_of(state.memory.accounts, state.memory.grants.values()),
        "vacated": dict(state.former_places),
        "held": dict(state.reserved_places),
        "announced": dict(state.announced),
        "unsettled": state.unsettled,
    }


def _weight(grant: Grant) -> int:
    own = 1000 * len(grant.cpus) if grant.kind is CpuKind.EXCLUSIVE else 0
    return max(2, (own + grant.fraction) * 1024 // 1000)


def _sums(pools: list[int], rows: Iterable[tuple[int, int]]) -> list[int]:
    sums: Counter[int] = Counter()
    for pool, amount in rows:
        sums[pool] += amount
    return [sums[pool] for pool in pools]
