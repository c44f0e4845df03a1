"""Which pool is chosen for its memory, and what decided against the next best."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, parse_bytes
from tests.policy.topology_aware.choosing import (
    Tenant,
    asked,
    best_effort,
    burstable,
    guaranteed,
    view,
)

# 3 of the 4 GiB of the first of four nodes are promised.
NODES = view("2s2n4c memory=4Gi", [Tenant("NUMA node #0", 10, memory="3Gi")])

# Node #0 has memory of CXL (node 4) and HBM (node 5) besides, the others have DRAM.
KINDS = view("2s2n2c memory=4Gi cxl=1x8Gi hbm=1x1Gi")

PAGES = view("2s2n2c memory=4Gi hugepages=2Mi:2")


def limited(request: str, limit: str, cpus: int | None) -> ContainerSpec:
    spec = burstable(100, cpus, request)
    return msgspec.structs.replace(spec, memory_limit=parse_bytes(limit))


def wanting(*kinds: MemoryKind, size: str = "1Gi") -> ContainerSpec:
    wish = Preferences(memory_kinds=frozenset(kinds))
    return guaranteed(1000, size, preferences=wish)


def pages(count: int) -> ContainerSpec:
    return guaranteed(1000, hugepages=(HugePages(Bytes(2 << 20), count),))


def order(spec: ContainerSpec, node: NodeView) -> list[str]:
    """Write the candidates as ``pool: what decided against the next``."""
    found = candidates(asked(spec, node), node)
    return [f"{one.pool.name}: {one.decided}" for one in found]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            guaranteed(1000, "1Gi"),
            ["NUMA node #1: id", "NUMA node #2: id", "NUMA node #3: spread"],
            id="a node with just enough memory is as good as any",
        ),
        pytest.param(
            guaranteed(1000, "2Gi"),
            ["NUMA node #1: id", "NUMA node #2: id", "NUMA node #3: fewer-nodes"],
            id="a node without the memory comes last",
        ),
        pytest.param(
            guaranteed(1000, "6Gi"),
            ["socket #1: fewer-nodes", "root: memory-offer", "NUMA node #1: id"],
            id="a socket with the memory is better than a node widened",
        ),
        pytest.param(
            guaranteed(1000, "13Gi"),
            ["root: memory-offer", "NUMA node #1: id", "NUMA node #2: id"],
            id="the root is better than a node widened",
        ),
        pytest.param(
            guaranteed(1000, "14Gi"),
            ["NUMA node #1: id", "NUMA node #2: id", "NUMA node #3: spread"],
            id="where no pool can offer it memory decides nothing",
        ),
        pytest.param(
            best_effort(),
            ["NUMA node #1: id", "NUMA node #2: id", "NUMA node #3: colocation"],
            id="without a memory request it gets one node nevertheless",
        ),
        pytest.param(
            guaranteed(1000, "6Gi", preferences=Preferences(preserve_memory=True)),
            ["NUMA node #1: id", "NUMA node #2: id", "NUMA node #3: spread"],
            id="memory that is left alone decides nothing",
        ),
    ],
)
def test_amounts(spec: ContainerSpec, expected: list[str]) -> None:
    assert order(spec, NODES)[:3] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            limited("1Gi", "6Gi", 1000),
            ["socket #1: spread", "socket #0: fewer-nodes"],
            id="nodes should hold the limit, promised or not",
        ),
        pytest.param(
            limited("1Gi", "4Gi", 1000),
            ["NUMA node #1: id", "NUMA node #2: id"],
            id="just holding it will do",
        ),
        pytest.param(
            limited("1Gi", "1Gi", 1000),
            ["NUMA node #1: id", "NUMA node #2: id"],
            id="a limit that is the request changes nothing",
        ),
        pytest.param(
            burstable(100, 1000, "1Gi"),
            ["root: memory-capacity-for-limit", "socket #1: spread"],
            id="without a limit larger is better",
        ),
        pytest.param(
            burstable(100, None, "1Gi"),
            ["socket #1: spread", "socket #0: burstable-level"],
            id="unless the level for those without a CPU limit says where",
        ),
        pytest.param(
            limited("1Gi", "9Gi", None),
            ["root: memory-capacity-for-limit", "socket #1: spread"],
            id="a limit goes before the level",
        ),
    ],
)
def test_limits(spec: ContainerSpec, expected: list[str]) -> None:
    assert order(spec, NODES)[:2] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            guaranteed(1000, "1Gi"),
            ["NUMA node #0: id", "NUMA node #1: id", "NUMA node #2: id"],
            id="memory of other kinds besides makes no pool better or worse",
        ),
        pytest.param(
            wanting(MemoryKind.CXL),
            ["NUMA node #0: depth", "socket #0: depth", "root: memory-kinds"],
            id="to where the kind is",
        ),
        pytest.param(
            wanting(MemoryKind.CXL, MemoryKind.DRAM),
            ["NUMA node #0: memory-kinds", "NUMA node #1: id", "NUMA node #2: id"],
            id="all kinds in one pool are better than some of them",
        ),
        pytest.param(
            wanting(MemoryKind.HBM, size="2Gi"),
            ["NUMA node #0: depth", "socket #0: depth", "root: memory-kinds"],
            id="a kind that is too small is offered with others",
        ),
        pytest.param(
            wanting(MemoryKind.PMEM),
            ["NUMA node #0: id", "NUMA node #1: id", "NUMA node #2: id"],
            id="a kind that no pool has decides nothing",
        ),
        pytest.param(
            guaranteed(
                1000,
                "1Gi",
                preferences=Preferences(
                    memory_kinds=frozenset({MemoryKind.DRAM, MemoryKind.CXL}),
                    cold_start=60,
                ),
            ),
            ["NUMA node #0: depth", "socket #0: depth", "root: memory-kinds"],
            id="a cold start is near the memory that comes after it",
        ),
    ],
)
def test_kinds(spec: ContainerSpec, expected: list[str]) -> None:
    assert order(spec, KINDS)[:3] == expected


def test_memory_that_needs_no_additional_node_is_better() -> None:
    """A process cannot start without memory that the kernel can use for itself."""
    machine = parse_spec("2s2c memory=4Gi cxl=2x4Gi")
    nodes = (msgspec.structs.replace(one, movable=one.id == 2) for one in machine.nodes)
    node = view(msgspec.structs.replace(machine, nodes=tuple(nodes)))

    assert order(wanting(MemoryKind.CXL), node) == [
        "socket #1: fewer-nodes",
        "socket #0: depth",
        "root: only-one",
    ]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(2, "NUMA node #0: id", id="a node has enough huge pages"),
        pytest.param(3, "socket #0: id", id="a socket has"),
        pytest.param(5, "root: memory-offer", id="only all together have"),
    ],
)
def test_huge_pages(count: int, expected: str) -> None:
    assert order(pages(count), PAGES)[0] == expected
