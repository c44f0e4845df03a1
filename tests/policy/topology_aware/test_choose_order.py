"""The order of pools is that of comparing them two by two."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.preferences import Preferences, TreeLevel
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.memory import offer_memory
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, PoolLedger
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import HugePages, Machine, MemoryKind
from nri_resmgr.topology.hints import Hint
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import (
    Bytes,
    CpuSet,
    MilliCpus,
    NodeSet,
    PolicyError,
    QosClass,
)
from tests.examples import examples
from tests.policy.topology_aware.choice_oracle import Referee

pytestmark = pytest.mark.slow  # every pair of pools, many times

GI = 1 << 30

MACHINES = [
    parse_spec(text)
    for text in (
        "1c memory=2Gi",
        "4c4e memory=4Gi",
        "1s2n3c l3=1 memory=4Gi isolated=2,5",
        "2s2n3c memory=4Gi,6Gi isolated=4-6",
        "2s2n2c2t memory=3Gi pmem=2x8Gi hugepages=1Gi:1",
        "2s2d2n2c memory=2Gi",
        "2s1n4c2e memory=4Gi hbm=2x2Gi cxl=1x4Gi:movable",
        "1s2n2c1t2e l3=2 memory=4Gi",
    )
]
PRIORITIES = list(CpuPriority)
MILLIS = st.integers(0, 16).map(lambda n: MilliCpus(250 * n))
SIZES = st.integers(0, 7).map(lambda n: Bytes(n * GI))


@st.composite
def tenants(draw: st.DrawFn, tree: PoolTree) -> list[tuple[ContainerSpec, Grant]]:
    free = list(draw(st.permutations(list(tree.machine.online))))
    rows = []
    for number in range(draw(st.integers(0, 6))):
        pool = draw(st.sampled_from(tree.pools))
        kind = draw(st.sampled_from([CpuKind.SHARED, CpuKind.EXCLUSIVE, CpuKind.MIXED]))
        whole = kind is not CpuKind.SHARED and draw(st.integers(0, 2))
        own, free = free[:whole], free[whole:]
        spec = ContainerSpec(
            f"tenant-{number}",
            draw(st.sampled_from(["pod", "other"])),
            qos=draw(st.sampled_from(QosClass)),
            memory_request=draw(SIZES),
        )
        fraction = draw(MILLIS) if kind is not CpuKind.EXCLUSIVE else MilliCpus(0)
        cpus = CpuSet.from_iterable(own)
        rows.append((spec, Grant(spec.id, kind, pool.id, cpus, fraction)))
    return rows


@st.composite
def rooms(draw: st.DrawFn) -> NodeView:
    machine = draw(st.sampled_from(MACHINES))
    reserved = CpuSet.of(*draw(st.sets(st.sampled_from([0, 1]), max_size=1)))
    tree = PoolTree.of(machine, machine.online, reserved & machine.online)
    options = TopologyAwareSettings(
        available=machine.online,
        reserved=reserved,
        prefer_shared=draw(st.booleans()),
        colocate_pods=draw(st.booleans()),
        cpu_priority=draw(st.sampled_from(PRIORITIES)),
        unlimited_burstable=draw(st.sampled_from(TreeLevel)),
    )
    ledger, memory = Ledger.of(), MemoryLedger.of(machine)
    grants: dict[str, Grant] = {}
    for spec, grant in draw(tenants(tree)):
        try:
            offer = offer_memory(spec, tree.pools[grant.pool], tree, memory)
        except PolicyError:
            continue  # the node is full
        memory = offer.commit(memory)
        ledger = ledger.put(spec, NO_PIN)
        grants[spec.id] = grant
    pool_ledger = PoolLedger.of(tree, grants.values())
    return NodeView(tree, options, ledger, grants, pool_ledger, memory)


@st.composite
def hints(draw: st.DrawFn, machine: Machine) -> Hint:
    cpus = st.sets(st.sampled_from(list(machine.online)), max_size=4)
    nodes = st.sets(st.sampled_from(list(machine.node_ids)), max_size=2)
    packages = st.frozensets(st.integers(0, 2), min_size=1)
    if draw(st.booleans()):
        return Hint("device", cpus=CpuSet.of(*draw(cpus)), packages=draw(packages))
    return Hint("device", nodes=NodeSet.of(*draw(nodes)), packages=draw(packages))


@st.composite
def preferences(draw: st.DrawFn) -> Preferences:
    maybe = st.none() | st.booleans()
    return Preferences(
        shared=draw(maybe),
        isolated=draw(maybe),
        require_isolated=draw(st.sampled_from([False, False, True])),
        memory_kinds=draw(st.just(frozenset()) | st.frozensets(st.sampled_from(KINDS))),
        cold_start=draw(st.sampled_from([0, 0, 9])),
        cpu_priority=draw(st.none() | st.sampled_from(PRIORITIES)),
        unlimited_burstable=draw(st.none() | st.sampled_from(TreeLevel)),
        strict_hints=draw(st.sampled_from([False, False, True])),
    )


KINDS = list(MemoryKind)


@st.composite
def demands(draw: st.DrawFn, view: NodeView) -> Demand:
    qos, request = draw(st.sampled_from(QosClass)), draw(MILLIS)
    fields: dict[str, Any] = {}
    if qos is QosClass.GUARANTEED:
        request = MilliCpus(1000 * draw(st.integers(0, 3)) + request % 1000)
        size = draw(SIZES)
        fields = {"limit": request, "memory_request": size, "memory_limit": size}
    elif qos is QosClass.BURSTABLE:
        fields = {
            "limit": draw(st.none() | MILLIS),
            "memory_request": draw(SIZES),
            "memory_limit": draw(st.none() | SIZES),
        }
    if draw(st.booleans()):
        fields["hugepages"] = (HugePages(Bytes(GI), draw(st.integers(0, 2))),)
    if draw(st.booleans()):
        fields["preferences"] = draw(preferences())
    if draw(st.booleans()):
        machine = view.tree.machine
        fields["hints"] = tuple(draw(st.lists(hints(machine), max_size=3)))
    spec = ContainerSpec("new", "pod", qos=qos, request=request, **fields)
    return demand_of(spec, view.settings)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Demand, NodeView]:
    view = draw(rooms())
    return draw(demands(view)), view


@examples(1.5)
@given(cases())
def test_each_pool_is_better_than_all_that_come_after(
    case: tuple[Demand, NodeView],
) -> None:
    """So the order is total, and the same whichever two pools are asked first."""
    demand, view = case
    referee = Referee(demand, view)

    order = list(candidates(demand, view))

    for place, better in enumerate(order):
        for worse in order[place + 1 :]:
            assert referee.judge(better.pool, worse.pool)[0] > 0
            assert referee.judge(worse.pool, better.pool)[0] < 0
    reported = [one.decided for one in order[:-1]]
    assert reported == [referee.judge(a.pool, b.pool)[1] for a, b in pairwise(order)]


@given(cases())
def test_only_pools_that_satisfy_the_demand_are_candidates(
    case: tuple[Demand, NodeView],
) -> None:
    demand, view = case
    referee = Referee(demand, view)

    found = {one.pool.id for one in candidates(demand, view)}

    assert found == {pool.id for pool in view.tree.pools if referee.admits(pool)}


@given(cases())
def test_scores_report_the_order_again(case: tuple[Demand, NodeView]) -> None:
    demand, view = case

    order = list(candidates(demand, view))

    scores = [[score for _, score in one.scores()] for one in order]
    assert scores == sorted(scores, reverse=True)
    assert len({*map(tuple, scores)}) == len(order)
