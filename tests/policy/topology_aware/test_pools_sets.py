"""What a tree of pools answers: sets of CPUs and memory, names and levels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet, NodeSet
from tests.topology.strategies import machines


def tree_of(machine: Machine) -> PoolTree:
    return PoolTree.of(machine, machine.online, NO_CPUS)


def test_reserved_cpus_are_reserved_though_they_are_isolated() -> None:
    machine = parse_spec("1s2n4c1t isolated=2-4,7")
    available, reserved = CpuSet.parse("0-2,4-7"), CpuSet.of(4)

    tree = PoolTree.of(machine, available, reserved)

    supplies = {
        pool.name: (str(pool.isolated), str(pool.reserved), str(pool.sharable))
        for pool in tree.pools
    }
    assert supplies == {
        "NUMA node #0": ("2", "", "0-1"),
        "NUMA node #1": ("7", "4", "5-6"),
        "socket #0": ("2,7", "4", "0-1,5-6"),
    }


def test_pools_are_found_by_name() -> None:
    tree = tree_of(parse_spec("2s2n1c1t"))

    assert tree.named("NUMA node #2") is tree.pools[3]
    assert tree.named("NUMA node #4") is None


@pytest.mark.parametrize(
    ("spec", "levels"),
    [
        pytest.param("1c", "package package package package package", id="one pool"),
        pytest.param("2s1c", "system package package package package", id="sockets"),
        pytest.param(
            "4s2c around=2", "system package package numa package", id="around sockets"
        ),
        pytest.param(
            "4s1c around=2", "system numa numa numa numa", id="sockets of one core"
        ),
        pytest.param("2s2n1c", "system package package numa numa", id="nodes"),
        pytest.param(
            "1s2d2c", "package package die die die", id="dies in a single socket"
        ),
        pytest.param(
            "2s4c1t l3=2", "system package package package l3cache", id="caches"
        ),
    ],
)
def test_a_level_that_is_not_there_stands_for_the_next_coarser(
    spec: str, levels: str
) -> None:
    tree = tree_of(parse_spec(spec))

    assert " ".join(tree.level_or_coarser(level) for level in TreeLevel) == levels


def test_the_memory_of_a_pool_by_kind() -> None:
    tree = tree_of(parse_spec("2s1c memory=8Gi hbm=2x1Gi pmem=2x8Gi"))
    kinds = frozenset({MemoryKind.DRAM, MemoryKind.HBM})

    assert [str(tree.nodes_of(pool, kinds)) for pool in tree.pools] == [
        "0,2",
        "1,3",
        "0-3",
    ]


@st.composite
def grown(draw: st.DrawFn) -> PoolTree:
    """Draw a machine with some CPUs available and some of these reserved."""
    machine = draw(machines())
    some = st.integers(0, machine.online.bits).map(CpuSet)
    available = machine.online & draw(some | st.just(machine.online))
    return PoolTree.of(machine, available, available & draw(some))


@given(grown())
def test_pools_in_a_pool_are_disjoint_parts_of_it(tree: PoolTree) -> None:
    for pool in tree.pools:
        inside = [one for one in tree.pools if one.parent == pool.id]
        together = CpuSet.union(one.cpus for one in inside)

        assert len(together) == sum(len(one.cpus) for one in inside)
        assert all(one.cpus < pool.cpus for one in inside)
        assert all(one.nodes <= pool.nodes for one in inside)


@given(grown())
def test_paths_and_subtrees_report_of_the_same_tree(tree: PoolTree) -> None:
    for pool in tree.pools:
        above = [one for one in tree.pools if pool.id in one.subtree]
        below = [one for one in tree.pools if pool.id in one.path]

        assert tree.pools[pool.id] is pool
        assert pool.path == tuple(one.id for one in above)
        assert pool.subtree == tuple(one.id for one in below)
        assert pool.depth == len(pool.path) - 1
        assert pool.path[-1] == tree.root.id
        assert tree.named(pool.name) is pool


@given(grown())
def test_a_pool_has_the_sets_of_the_root_as_far_as_its_cpus_go(tree: PoolTree) -> None:
    root = tree.root
    for pool in tree.pools:
        assert pool.isolated == root.isolated & pool.cpus
        assert pool.reserved == root.reserved & pool.cpus
        assert pool.sharable == root.sharable & pool.cpus


@given(st.data(), machines())
def test_every_available_cpu_is_in_one_set_of_the_root(
    data: st.DataObject, machine: Machine
) -> None:
    some = st.integers(0, machine.online.bits).map(CpuSet)
    available = machine.online & data.draw(some)
    reserved = available & data.draw(some)

    root = PoolTree.of(machine, available, reserved).root

    for cpu in machine.online:
        isolated = cpu in machine.isolated and cpu not in reserved
        assert [cpu in root.reserved, cpu in root.isolated, cpu in root.sharable] == [
            cpu in available and cpu in reserved,
            cpu in available and isolated,
            cpu in available and not isolated and cpu not in reserved,
        ]
    assert root.cpus == machine.online


@given(grown())
def test_memory_is_near_and_none_is_left_out(tree: PoolTree) -> None:
    machine = tree.machine

    assert tree.root.nodes == machine.memory_nodes
    for pool in tree.pools:
        expected = {
            node.id
            for node in machine.nodes
            if node.memory and nearest_cpu_nodes(machine, node.id) & pool.cpus
        }
        if machine.memory_nodes:
            assert pool.nodes
        if expected and pool is not tree.root:
            assert set(pool.nodes) == expected


def nearest_cpu_nodes(machine: Machine, node: int) -> CpuSet:
    """Return the CPUs for which a node is their own, or its nearest CPUs."""
    if own := machine.node(node).cpus:
        return own
    far = {one.id: machine.distance(one.id, node) for one in machine.nodes if one.cpus}
    nearest = {one for one, distance in far.items() if distance == min(far.values())}
    return machine.cpus_of(NodeSet.from_iterable(nearest))
