"""Machines of the kinds that exist, and the trees that grow out of them."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS


def tree_of(machine: Machine) -> PoolTree:
    return PoolTree.of(machine, machine.online, NO_CPUS)


def drawn(tree: PoolTree) -> str:
    """Write a line per pool: its name, CPUs and memory nodes, the root first."""
    return "\n".join(
        f"{'  ' * pool.depth}{pool.name}: {pool.cpus} mem {pool.nodes}"
        for pool in reversed(tree.pools)
    )


# Pools of one parent are written the highest id first.
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param("1c", "socket #0: 0 mem 0", id="a machine of one CPU is one pool"),
        pytest.param(
            "1s6c2t8e", "socket #0: 0-19 mem 0", id="a hybrid desktop is one pool"
        ),
        pytest.param(
            "2s2c2t",
            """\
root: 0-7 mem 0-1
  socket #1: 2-3,6-7 mem 1
  socket #0: 0-1,4-5 mem 0""",
            id="one node in each of two sockets is no level of its own",
        ),
        pytest.param(
            "2s2n2c1t",
            """\
root: 0-7 mem 0-3
  socket #1: 4-7 mem 2-3
    NUMA node #3: 6-7 mem 3
    NUMA node #2: 4-5 mem 2
  socket #0: 0-3 mem 0-1
    NUMA node #1: 2-3 mem 1
    NUMA node #0: 0-1 mem 0""",
            id="sub-NUMA clustering, with the cache of the socket whole",
        ),
        pytest.param(
            "1s2n4c1t l3=2",
            """\
socket #0: 0-7 mem 0-1
  NUMA node #1: 4-7 mem 1
    NUMA node #1/L3 cache #3: 6-7 mem 1
    NUMA node #1/L3 cache #2: 4-5 mem 1
  NUMA node #0: 0-3 mem 0
    NUMA node #0/L3 cache #1: 2-3 mem 0
    NUMA node #0/L3 cache #0: 0-1 mem 0""",
            id="AMD with several caches in a node",
        ),
        pytest.param(
            "1s2n2c1t l3=2",
            """\
socket #0: 0-3 mem 0-1
  NUMA node #1: 2-3 mem 1
  NUMA node #0: 0-1 mem 0""",
            id="one cache in a node is no level of its own",
        ),
        pytest.param(
            "1s1n4c1t l3=2",
            """\
socket #0: 0-3 mem 0
  socket #0/L3 cache #1: 2-3 mem 0
  socket #0/L3 cache #0: 0-1 mem 0""",
            id="caches divide a socket of one node",
        ),
        pytest.param(
            "1s2n3c1t l3=2",
            """\
socket #0: 0-5 mem 0-1
  NUMA node #1: 3-5 mem 1
  NUMA node #0: 0-2 mem 0""",
            id="a cache across two nodes leaves one in each, which is no level",
        ),
        pytest.param(
            "1s2d1n2c1t",
            """\
socket #0: 0-3 mem 0-1
  die #0/1: 2-3 mem 1
  die #0/0: 0-1 mem 0""",
            id="dies, where the kernel knows no clusters",
        ),
        pytest.param(
            "1s2d1n2c1t cluster=1",
            """\
socket #0: 0-3 mem 0-1
  die #0/1: 2-3 mem 1
  die #0/0: 0-1 mem 0""",
            id="dies of several clusters",
        ),
        pytest.param(
            "1s2d1n2c1t cluster=2",
            """\
socket #0: 0-3 mem 0-1
  NUMA node #1: 2-3 mem 1
  NUMA node #0: 0-1 mem 0""",
            id="dies that are clusters are no level, their nodes are",
        ),
        pytest.param(
            "1s2d2n1c1t cluster=1",
            """\
socket #0: 0-3 mem 0-3
  die #0/1: 2-3 mem 2-3
    NUMA node #3: 3 mem 3
    NUMA node #2: 2 mem 2
  die #0/0: 0-1 mem 0-1
    NUMA node #1: 1 mem 1
    NUMA node #0: 0 mem 0""",
            id="nodes in dies",
        ),
        pytest.param(
            "1s4n1c1t memory=1Gi,0",
            """\
socket #0: 0-3 mem 0,2
  NUMA node #2: 2 mem 2
  NUMA node #0: 0 mem 0""",
            id="the CPUs of nodes without memory are the parent's",
        ),
        pytest.param(
            "2s1c memory=1Gi,0",
            """\
root: 0-1 mem 0
  socket #1: 1 mem 0
  socket #0: 0 mem 0""",
            id="a socket without memory uses the nearest",
        ),
        pytest.param(
            "2s2d2c memory=1Gi,0 distances="
            "10,20,30,30;20,10,15,30;30,15,10,20;30,30,20,10",
            """\
root: 0-7 mem 0,2
  socket #1: 4-7 mem 2
    die #1/1: 6-7 mem 2
    die #1/0: 4-5 mem 2
  socket #0: 0-3 mem 0
    die #0/1: 2-3 mem 0
    die #0/0: 0-1 mem 0""",
            id="a die without memory stays with that of its socket",
        ),
        pytest.param(
            "1s2n1c1t memory=8Gi hbm=2x1Gi",
            """\
socket #0: 0-1 mem 0-3
  NUMA node #1: 1 mem 1,3
  NUMA node #0: 0 mem 0,2""",
            id="HBM in flat mode belongs to the closest CPUs",
        ),
        pytest.param(
            "2s2n1c1t pmem=2x8Gi",
            """\
root: 0-3 mem 0-5
  socket #1: 2-3 mem 2-3,5
    NUMA node #3: 3 mem 3
    NUMA node #2: 2 mem 2,5
  socket #0: 0-1 mem 0-1,4
    NUMA node #1: 1 mem 1
    NUMA node #0: 0 mem 0,4""",
            id="PMEM of each socket",
        ),
        pytest.param(
            "1s2n1c1t cxl=4Gi distances=10,12,20;12,10,20;20,20,10",
            """\
socket #0: 0-1 mem 0-2
  NUMA node #1: 1 mem 1-2
  NUMA node #0: 0 mem 0,2""",
            id="a CXL expander as far from one node as from the other is both's",
        ),
        pytest.param(
            "1s2n1c1t cxl=4Gi distances=10,12,30;12,10,20;15,40,10",
            """\
socket #0: 0-1 mem 0-2
  NUMA node #1: 1 mem 1-2
  NUMA node #0: 0 mem 0""",
            id="of asymmetric distances that from the CPUs counts",
        ),
        pytest.param(
            "2s1c dram=2x0 ids=0,8,252,253",
            """\
root: 0-1 mem 0,8
  socket #1: 1 mem 8
  socket #0: 0 mem 0""",
            id="sparse node ids, and placeholders without anything",
        ),
        pytest.param(
            "1s2n2c1t ids=3,17 offline=0",
            """\
socket #0: 1-3 mem 3,17
  NUMA node #17: 2-3 mem 17
  NUMA node #3: 1 mem 3""",
            id="offline CPUs are in no pool",
        ),
        pytest.param(
            "1s2n1c1t offline=0",
            "socket #0: 1 mem 0-1",
            id="a node whose CPUs are offline is memory for the others",
        ),
        pytest.param(
            "6s2c around=3",
            """\
root: 0-11 mem 0-1
  NUMA node #1: 6-11 mem 1
    socket #5: 10-11 mem 1
    socket #4: 8-9 mem 1
    socket #3: 6-7 mem 1
  NUMA node #0: 0-5 mem 0
    socket #2: 4-5 mem 0
    socket #1: 2-3 mem 0
    socket #0: 0-1 mem 0""",
            id="nodes around sockets",
        ),
        pytest.param(
            "4s1c2t around=2",
            """\
root: 0-7 mem 0-1
  NUMA node #1: 2-3,6-7 mem 1
  NUMA node #0: 0-1,4-5 mem 0""",
            id="sockets of one core are no level where several share a node",
        ),
        pytest.param(
            "16s1c around=16", "root: 0-15 mem 0", id="and divide no machine of a node"
        ),
        pytest.param(
            "4s2c around=2 memory=0,1Gi",
            """\
root: 0-7 mem 1
  socket #1: 2-3 mem 1
  socket #0: 0-1 mem 1
  NUMA node #1: 4-7 mem 1
    socket #3: 6-7 mem 1
    socket #2: 4-5 mem 1""",
            id="sockets of a node without memory are the root's",
        ),
        pytest.param(
            "1s4c emulated=4", "socket #0: 0-3 mem 0-3", id="emulated nodes are one"
        ),
        pytest.param(
            "1s2n2c emulated=2",
            """\
socket #0: 0-3 mem 0-3
  NUMA node #2: 2-3 mem 2-3
  NUMA node #0: 0-1 mem 0-1""",
            id="emulated nodes of two real ones are two",
        ),
        pytest.param(
            "1s4c2t l3=1", "socket #0: 0-7 mem 0", id="caches of one core are no level"
        ),
    ],
)
def test_a_tree_follows_its_machine(spec: str, expected: str) -> None:
    assert drawn(tree_of(parse_spec(spec))) == expected


def test_ids_put_children_first_and_paths_lead_up() -> None:
    pools = tree_of(parse_spec("2s2n1c1t")).pools

    assert [(one.name, one.path, one.subtree, one.level) for one in pools] == [
        ("NUMA node #0", (0, 2, 6), (0,), TreeLevel.NUMA),
        ("NUMA node #1", (1, 2, 6), (1,), TreeLevel.NUMA),
        ("socket #0", (2, 6), (0, 1, 2), TreeLevel.PACKAGE),
        ("NUMA node #2", (3, 5, 6), (3,), TreeLevel.NUMA),
        ("NUMA node #3", (4, 5, 6), (4,), TreeLevel.NUMA),
        ("socket #1", (5, 6), (3, 4, 5), TreeLevel.PACKAGE),
        ("root", (6,), (0, 1, 2, 3, 4, 5, 6), TreeLevel.SYSTEM),
    ]


def test_caches_without_ids_are_counted() -> None:
    machine = parse_spec("1s1n4c1t l3=2")
    nameless = tuple(
        msgspec.structs.replace(cache, id=None) for cache in machine.caches
    )

    tree = tree_of(msgspec.structs.replace(machine, caches=nameless))

    assert [pool.name for pool in tree.pools] == [
        "socket #0/L3 cache #0",
        "socket #0/L3 cache #1",
        "socket #0",
    ]


def with_dies(machine: Machine, dies: dict[int, int]) -> Machine:
    """Put cores, by their lowest CPU, on other dies."""
    cores = (
        msgspec.structs.replace(core, die=dies.get(core.cpus.first, core.die))
        for core in machine.cores
    )
    return msgspec.structs.replace(machine, cores=tuple(cores))


def test_nodes_that_span_dies_divide_the_socket_instead() -> None:
    machine = parse_spec("1s2n4c1t l3=2")
    by_cache = with_dies(machine, {cpu: cpu // 2 for cpu in range(8)})

    assert drawn(tree_of(by_cache)) == drawn(tree_of(machine))


def test_a_node_without_memory_may_span_dies() -> None:
    machine = with_dies(parse_spec("1s2n2c1t memory=0,1Gi"), {0: 0, 1: 1, 2: 2, 3: 2})

    assert drawn(tree_of(machine)) == (
        "socket #0: 0-3 mem 1\n"
        "  die #0/2: 2-3 mem 1\n"
        "  die #0/1: 1 mem 1\n"
        "  die #0/0: 0 mem 1"
    )


def test_a_node_that_spans_sockets_is_no_pool() -> None:
    machine = parse_spec("1s2n4c1t")
    moved = tuple(
        msgspec.structs.replace(c, package=c.cpus.first // 2 % 3) for c in machine.cores
    )

    assert drawn(tree_of(msgspec.structs.replace(machine, cores=moved, caches=()))) == (
        "root: 0-7 mem 0-1\n"
        "  socket #2: 4-5 mem 1\n"
        "  socket #1: 2-3 mem 0\n"
        "  socket #0: 0-1,6-7 mem 0-1"
    )
