"""Which nodes a NUMA policy means here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.memory import (
    MemoryPlace,
    NumaPolicy,
    PolicyFlag,
    PolicyMode,
    ResolvedPolicy,
    resolve_numa_policy,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, NodeSet, ResmgrError

# node   0    1    2    3    4 (no CPUs)
# CPUs  0-1  2-3  4-5  6-7
# memory yes  no  yes  yes  yes; two sockets: nodes 0-1 and 2-3
MACHINE = parse_spec(
    "2s2n2c1t memory=4Gi,0,4Gi,4Gi cxl=1x8Gi distances="
    "10,12,21,22,30;12,10,22,20,31;20,22,10,12,40;22,20,12,10,41;30,31,40,41,10"
)
FAR = [
    [10, 12, 21, 22, 30],
    [12, 10, 22, 20, 31],
    [20, 22, 10, 12, 40],
    [22, 20, 12, 10, 41],
    [30, 31, 40, 41, 10],
]
TITLE = "default/shop/web"


def meant(nodes: str, place: MemoryPlace, *flags: PolicyFlag) -> NodeSet:
    policy = NumaPolicy(PolicyMode.INTERLEAVE, nodes, flags)
    policy.check()
    found = resolve_numa_policy(policy, place, MACHINE, TITLE)

    assert found == ResolvedPolicy(PolicyMode.INTERLEAVE, found.nodes, flags)
    return found.nodes


def place(cpus: str = "", mems: str = "") -> MemoryPlace:
    return MemoryPlace(CpuSet.parse(cpus), NodeSet.parse(mems))


@pytest.mark.parametrize(
    ("nodes", "where", "expected"),
    [
        pytest.param("0", place(), "0", id="a node"),
        pytest.param("0-1,4", place(), "0-1,4", id="a list as it is written"),
        pytest.param("all", place("0", "2"), "0,2-4", id="all that have memory"),
        pytest.param("allowed-mems", place("0", "2-4"), "2-4", id="the cpuset's"),
        pytest.param("allowed-mems", place("0"), "0,2-4", id="no cpuset, all nodes"),
        pytest.param("allowed-mems", place("", "1-2"), "2", id="without memory, no"),
        pytest.param("cpu-nodes", place("0"), "0", id="the node of a CPU"),
        pytest.param("cpu-nodes", place("1,4,7"), "0,2-3", id="the nodes of some CPUs"),
        pytest.param("cpu-nodes", place("0-3"), "0", id="a CPU's node without memory"),
        pytest.param("cpu-nodes", place(), "0,2-3", id="no CPUs, all of them"),
        pytest.param("cpu-packages", place("2"), "0", id="the package of a CPU"),
        pytest.param("cpu-packages", place("5"), "2-3", id="the other package"),
        pytest.param("cpu-packages", place("0,6"), "0,2-3", id="both packages"),
        pytest.param("max-dist:10", place("4"), "2", id="nothing but here"),
        pytest.param("max-dist:12", place("4"), "2-3", id="as far as the neighbour"),
        pytest.param("max-dist:19", place("4"), "2-3", id="not as far as the other"),
        pytest.param("max-dist:20", place("4"), "0,2-3", id="as far as the other one"),
        pytest.param("max-dist:20", place("0"), "0", id="farther there than back"),
        pytest.param("max-dist:39", place("4"), "0,2-3", id="not as far as the CXL"),
        pytest.param("max-dist:40", place("4"), "0,2-4", id="as far as the CXL"),
        pytest.param("max-dist:30", place("0,4"), "0,2-4", id="from the nearest CPU"),
        pytest.param("max-dist:12", place("2"), "0", id="from a node without memory"),
        pytest.param("max-dist:255", place("0", "2"), "0,2-4", id="not cut to mems"),
    ],
)
def test_nodes_mean(nodes: str, where: MemoryPlace, expected: str) -> None:
    assert str(meant(nodes, where)) == expected


def test_relative_nodes_count_among_the_containers_own() -> None:
    assert str(meant("5-6", place("0", "2"), PolicyFlag.RELATIVE_NODES)) == "5-6"


@pytest.mark.parametrize(
    "policy",
    [
        NumaPolicy(PolicyMode.LOCAL),
        NumaPolicy(PolicyMode.DEFAULT),
        NumaPolicy(PolicyMode.PREFERRED),
    ],
)
def test_without_nodes_there_is_nothing_to_work_out(policy: NumaPolicy) -> None:
    policy.check()

    found = resolve_numa_policy(policy, place("0", "2"), MACHINE, TITLE)
    assert found == ResolvedPolicy(policy.mode)


@pytest.mark.parametrize(
    ("nodes", "where", "complaint"),
    [
        pytest.param(
            "0,5",
            place(),
            "nodes '0,5' of its memory policy mean 0,5 here: the machine has 0-4",
            id="a node that is not there",
        ),
        pytest.param(
            "0",
            place("0", "2-3"),
            "nodes '0' of its memory policy mean 0 here: the container may use the "
            "memory of 2-3",
            id="a node that the container may not use",
        ),
        pytest.param(
            "1",
            place(),
            "nodes '1' of its memory policy mean 1 here: the container may use the "
            "memory of 0,2-4",
            id="a node without memory",
        ),
        pytest.param(
            "cpu-nodes",
            place("2-3"),
            "nodes 'cpu-nodes' of its memory policy mean none here: the container may "
            "use the memory of 0,2-4",
            id="CPUs on a node without memory",
        ),
        pytest.param(
            "cpu-nodes",
            place("0", "1"),
            "nodes 'cpu-nodes' of its memory policy mean 0 here: the container may use "
            "the memory of none",
            id="a container without memory",
        ),
    ],
)
def test_nodes_that_the_kernel_would_refuse(
    nodes: str, where: MemoryPlace, complaint: str
) -> None:
    with pytest.raises(ResmgrError) as error:
        meant(nodes, where)

    assert str(error.value) == f"{TITLE}: {complaint}"


@given(
    st.sampled_from(["all", "allowed-mems", "cpu-packages", "cpu-nodes"])
    | st.integers(10, 255).map("max-dist:{}".format),
    st.sets(st.integers(0, 7)),
    st.sets(st.integers(0, 4)),
)
def test_keywords_stand_for_nodes_with_memory_or_none(
    nodes: str, cpus: set[int], mems: set[int]
) -> None:
    here = MemoryPlace(CpuSet.from_iterable(cpus), NodeSet.from_iterable(mems))
    with_memory = {0, 2, 3, 4}
    usable = with_memory & mems if mems else with_memory
    own = {cpu // 2 for cpu in cpus} or {0, 1, 2, 3}
    words = {
        "all": with_memory,
        "allowed-mems": usable,
        "cpu-nodes": own,
        "cpu-packages": {node // 2 * 2 + at for node in own for at in (0, 1)},
    }
    far = int(nodes.partition(":")[2] or 0)
    near = {to for to in with_memory if min(FAR[one][to] for one in own) <= far}
    expected = words.get(nodes, near) & with_memory
    try:
        found = set(meant(nodes, here))
    except ResmgrError:
        assert not expected & usable
        return

    assert found == expected
    assert found & usable
