"""How a machine is cut into groups, and in which order they count."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.cpus.levels import TopologyLevel, partitions
from nri_resmgr.topology import CacheKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

M, P, D, N = (
    TopologyLevel.MACHINE,
    TopologyLevel.PACKAGE,
    TopologyLevel.DIE,
    TopologyLevel.NODE,
)
CACHE, CLUSTER, CORE = TopologyLevel.CACHE, TopologyLevel.CLUSTER, TopologyLevel.CORE


def cut(spec: str) -> list[tuple[set[TopologyLevel], str]]:
    return [
        (set(row.levels), " ".join(str(CpuSet(bits)) for bits in row.groups))
        for row in partitions(parse_spec(spec))
    ]


@pytest.mark.parametrize(
    ("spec", "rows"),
    [
        pytest.param(
            "1c", [({M, P, D, N, CACHE, CORE}, "0")], id="one CPU is every group"
        ),
        pytest.param(
            "2s2c2t",
            [
                ({M}, "0-7"),
                ({P, D, N, CACHE}, "0-1,4-5 2-3,6-7"),
                ({CORE}, "0,4 1,5 2,6 3,7"),
            ],
            id="groups that are the same count once",
        ),
        pytest.param(
            "1s2n2c",
            [({M, P, D, CACHE}, "0-3"), ({N}, "0-1 2-3"), ({CORE}, "0 1 2 3")],
            id="a cache around nodes is outside of them",
        ),
        pytest.param(
            "4c l3=2 cluster=4",
            [({M, P, D, N, CLUSTER}, "0-3"), ({CACHE}, "0-1 2-3"), ({CORE}, "0 1 2 3")],
            id="a cluster around caches is outside of them",
        ),
        pytest.param(
            "1s2n3c l3=2",
            [
                ({M, P, D}, "0-5"),
                ({N}, "0-2 3-5"),
                ({CACHE}, "0-1 2 3 4-5"),
                ({CORE}, "0 1 2 3 4 5"),
            ],
            id="a cache over the border of two nodes is cut",
        ),
        pytest.param(
            "1c2t4e",
            [
                ({M, P, D, N, CACHE}, "0-5"),
                ({CLUSTER}, "0-1 2-5"),
                ({CORE}, "0-1 2 3 4 5"),
            ],
            id="a hybrid machine has a cluster per strong core and per module",
        ),
        pytest.param(
            "2c2t offline=1",
            [({M, P, D, N, CACHE}, "0,2-3"), ({CORE}, "0,2 3")],
            id="offline CPUs are in no group",
        ),
    ],
)
def test_cuts_finer_and_finer(
    spec: str, rows: list[tuple[set[TopologyLevel], str]]
) -> None:
    assert cut(spec) == rows


def test_one_node_over_two_packages_is_outside_of_them() -> None:
    machine = parse_spec("2s1c")
    whole = msgspec.structs.replace(
        machine,
        nodes=(msgspec.structs.replace(machine.nodes[0], cpus=machine.online),),
        distances=((10,),),
    )

    assert [set(row.levels) for row in partitions(whole)] == [
        {M, N},
        {P, D, CACHE, CORE},
    ]


def test_cpus_without_a_last_cache_fall_back_to_the_one_they_have() -> None:
    machine = parse_spec("4c2t4e")
    unified = CacheKind.UNIFIED
    some = tuple(
        msgspec.structs.replace(cache, cpus=CpuSet.parse("0-7"))
        if cache.level == 3
        else cache
        for cache in machine.caches
        if cache.kind is unified
    )
    rows = partitions(msgspec.structs.replace(machine, caches=some))
    caches = next(row for row in rows if CACHE in row.levels)

    assert [str(CpuSet(bits)) for bits in caches.groups] == ["0-7", "8-11"]
