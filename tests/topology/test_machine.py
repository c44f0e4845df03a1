"""What a machine answers about its CPUs, nodes and distances."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nri_resmgr.topology import (
    Cache,
    CacheKind,
    ContradictoryMachine,
    Core,
    CoreKind,
    Cpu,
    Machine,
    MemoryKind,
    Node,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, NodeSet

# node 0: cores {0,4} {1,5}     node 1: cores {2,6} {3,7}     node 2: CXL
MACHINE = parse_spec("2s2c2t cxl=64Gi")


def test_a_cpu_knows_its_groups() -> None:
    assert MACHINE.core_of(6).cpus == CpuSet.of(2, 6)
    assert MACHINE.node_of(6).id == 1
    assert MACHINE.package_of(6) == MACHINE.packages[1]
    assert MACHINE.die_of(6) == MACHINE.dies[1]
    assert MACHINE.cpu(6) == Cpu(6)


def test_an_unknown_cpu_is_a_bug_of_the_caller() -> None:
    with pytest.raises(KeyError):
        MACHINE.node_of(8)


def test_nodes_are_found_by_cpus_memory_and_kind() -> None:
    assert MACHINE.node_ids == NodeSet.of(0, 1, 2)
    assert MACHINE.cpu_nodes == NodeSet.of(0, 1)
    assert MACHINE.memory_nodes == NodeSet.of(0, 1, 2)
    assert MACHINE.nodes_of_kind(MemoryKind.CXL) == NodeSet.of(2)
    assert MACHINE.nodes_of(CpuSet.of(4, 6)) == NodeSet.of(0, 1)
    assert MACHINE.cpus_of(NodeSet.of(1, 2)) == CpuSet.parse("2-3,6-7")
    assert MACHINE.node(2).memory == 64 << 30


def test_kinds_of_cores() -> None:
    machine = parse_spec("2c1t1e")

    assert machine.kinds == (CoreKind.PERFORMANCE, CoreKind.EFFICIENT)
    assert machine.cpus_of_kind(CoreKind.EFFICIENT) == CpuSet.of(2)
    assert machine.cpus_of_kind(CoreKind.OTHER) == CpuSet()


@pytest.mark.parametrize(
    ("spec", "cpus", "nodes"),
    [
        pytest.param("2s1c", "0", "0", id="its own node"),
        pytest.param("2s1c", "0-1", "0-1", id="all its own nodes"),
        pytest.param("2s1c", "", "", id="nothing for no CPUs"),
        pytest.param("2s1c memory=1Gi,0", "0-1", "0", id="only those with memory"),
        pytest.param("2s2n1c memory=0,1Gi", "0", "1", id="the nearest one"),
        pytest.param("3s1c memory=0,1Gi,1Gi", "0", "1-2", id="all nearest ones"),
        pytest.param("1c memory=0 hbm=2x1Gi", "0", "1-2", id="memory-only ones"),
        pytest.param("1c memory=0", "0", "", id="nothing where nothing is"),
    ],
)
def test_nearest_memory(spec: str, cpus: str, nodes: str) -> None:
    found = parse_spec(spec).nearest_memory(CpuSet.parse(cpus))

    assert found == NodeSet.parse(nodes)


def test_memory_near_any_of_the_cpus_is_near() -> None:
    rows = "10,90,12,40;90,10,50,30;12,50,10,90;40,30,90,10"
    machine = parse_spec(f"4s1c memory=0,0,1Gi,1Gi distances={rows}")

    assert machine.nearest_memory(CpuSet.of(0, 1)) == NodeSet.of(2)


def test_distances_need_not_be_symmetric_and_go_by_id() -> None:
    machine = parse_spec("2s1c ids=1,5 distances=10,17;28,10")

    assert (machine.distance(1, 5), machine.distance(5, 1)) == (17, 28)
    assert machine.distance(5, 5) == 10


def test_a_machine_beyond_1024_cpus() -> None:
    machine = parse_spec("8s2n64c2t")

    assert len(machine.online) == 2048
    assert machine.core_of(2047).cpus == CpuSet.of(1023, 2047)
    assert str(machine.packages[7].cpus) == "896-1023,1920-2047"


def test_equal_facts_make_equal_machines() -> None:
    assert parse_spec("2s2c2t cxl=64Gi") == MACHINE
    assert parse_spec("2s2c2t cxl=32Gi") != MACHINE


ONE = Machine(
    cores=(Core(0, 0, None, 0, CpuSet.of(0)),),
    cpus=(Cpu(0),),
    nodes=(Node(0, CpuSet.of(0)),),
    distances=((10,),),
)
TWO = Core(0, 0, None, 1, CpuSet.of(1))
L3 = Cache(3, CacheKind.UNIFIED, 0, CpuSet.of(0), Bytes(0))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        pytest.param({"cores": ()}, "no CPU is online", id="no core"),
        pytest.param({"cores": (TWO,)}, "CPU 0-1 is only in one", id="other CPUs"),
        pytest.param(
            {"cores": (*ONE.cores, msgspec.structs.replace(TWO, cpus=CpuSet()))},
            "core 1 has no CPU",
            id="an empty core",
        ),
        pytest.param(
            {"cores": ONE.cores * 2}, "CPU 0 is in two cores", id="a shared CPU"
        ),
        pytest.param({"cpus": ()}, "CPU 0 is only in one", id="facts missing"),
        pytest.param({"nodes": ()}, "CPU 0 is online and in no node", id="no node"),
        pytest.param(
            {"nodes": (Node(0, CpuSet.of(0, 1)),)},
            "CPU 1 is in a node and not online",
            id="a node with more",
        ),
        pytest.param(
            {"nodes": (Node(0, CpuSet.of(0)), Node(1, CpuSet.of(0, 1)))},
            "CPU 0 is in two nodes",
            id="nodes that have some CPUs in common",
        ),
        pytest.param(
            {"nodes": (Node(1, CpuSet.of(0)), Node(0))},
            "nodes repeat or are out of order",
            id="nodes out of order",
        ),
        pytest.param({"distances": ((10, 21),)}, "1 by 1 matrix", id="a long row"),
        pytest.param({"distances": ((10,), (10,))}, "1 by 1 matrix", id="two rows"),
        pytest.param({"present": CpuSet()}, "not present", id="online, not present"),
        pytest.param({"caches": (L3, L3)}, "two level 3 caches", id="a cache twice"),
        pytest.param(
            {"caches": (msgspec.structs.replace(L3, cpus=CpuSet.of(1)),)},
            "CPU 1 has a cache and is not online",
            id="a cache of an offline CPU",
        ),
        pytest.param(
            {"caches": (msgspec.structs.replace(L3, cpus=CpuSet()),)},
            "level 3 cache has no CPU",
            id="a cache without CPUs",
        ),
    ],
)
def test_contradictions_are_refused(change: dict[str, Any], what: str) -> None:
    with pytest.raises(ContradictoryMachine, match=what):
        msgspec.structs.replace(ONE, **change)
