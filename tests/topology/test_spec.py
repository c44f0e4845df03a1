"""The words of a synthetic machine's spec."""

from __future__ import annotations

import pytest

from nri_resmgr.topology import ContradictoryMachine, HugePages
from nri_resmgr.topology.spec import BadMachineSpec
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, NodeSet


@pytest.mark.parametrize(
    ("spec", "cores"),
    [
        pytest.param("2s1c2t", "0,2 1,3", id="servers number first threads first"),
        pytest.param("1s2c2t numbering=adjacent", "0-1 2-3", id="or core by core"),
        pytest.param("1s1c2t1e", "0-1 2", id="hybrid parts go core by core"),
        pytest.param("1s1c2t1e numbering=split", "0,2 1", id="the default"),
        pytest.param("3c", "0 1 2", id="what is left out is one"),
        pytest.param("1s0c2e", "0 1", id="only efficient cores"),
    ],
)
def test_numbering(spec: str, cores: str) -> None:
    assert " ".join(str(core.cpus) for core in parse_spec(spec).cores) == cores


def test_modules_of_efficient_cores_begin_after_the_others() -> None:
    clusters = parse_spec("3c5e").clusters

    assert [str(cluster.cpus) for cluster in clusters] == ["0", "1", "2", "3-6", "7"]


def test_every_die_has_so_many_nodes() -> None:
    machine = parse_spec("2s2d2n4c2t")

    assert [len(machine.packages), len(machine.dies), len(machine.nodes)] == [2, 4, 8]
    assert (len(machine.cores), str(machine.online)) == (32, "0-63")


def test_offline_cpus_have_no_place() -> None:
    machine = parse_spec("2s1n1c2t offline=1,2-3")

    assert (str(machine.present), str(machine.online)) == ("0-3", "0")
    assert str(machine.offline) == "1-3"
    assert [(node.id, str(node.cpus)) for node in machine.nodes] == [(0, "0"), (1, "")]
    assert len(machine.packages) == 1


def test_nodes_around_sockets() -> None:
    machine = parse_spec("4s2c1t around=2 cxl=2x1Gi")

    assert [str(node.cpus) for node in machine.nodes] == ["0-3", "4-7", "", ""]
    assert [str(package.cpus) for package in machine.packages] == [
        "0-1",
        "2-3",
        "4-5",
        "6-7",
    ]
    assert machine.distances[0] == (10, 21, 24, 35)


def test_nodes_of_emulated_numa() -> None:
    machine = parse_spec("2s2c emulated=2 memory=4Gi cxl=1Gi")

    assert [(str(one.cpus), one.memory >> 30) for one in machine.nodes] == [
        ("0-1", 2),
        ("0-1", 2),
        ("2-3", 2),
        ("2-3", 2),
        ("", 1),
    ]
    assert machine.distances[0] == (10, 10, 21, 21, 24)
    assert [str(cpus) for cpus in machine.node_cpus] == ["0-1", "2-3"]


@pytest.mark.parametrize("spec", ["3s1c around=2", "2s2n1c around=2", "1s1c around=0"])
def test_only_whole_sockets_can_be_in_a_node(spec: str) -> None:
    with pytest.raises(BadMachineSpec, match="around="):
        parse_spec(spec)


def test_level_3_caches_of_unequal_size() -> None:
    machine = parse_spec("2s4c2t l3=3,1")

    assert [str(cache.cpus) for cache in machine.caches_at(3)] == [
        "0-2,8-10",
        "3,11",
        "4-6,12-14",
        "7,15",
    ]


def test_isolated_cpus() -> None:
    assert parse_spec("4c isolated=2-3").isolated == CpuSet.of(2, 3)


def test_memory_is_repeated_over_the_nodes() -> None:
    machine = parse_spec("1s3n1c memory=1Gi,0 hugepages=1Gi:1,2Mi:8")

    assert [node.memory for node in machine.nodes] == [1 << 30, 0, 1 << 30]
    assert machine.nodes[0].hugepages == (
        HugePages(Bytes(2 << 20), 8),
        HugePages(Bytes(1 << 30), 1),
    )


def test_memory_only_nodes_are_spread_and_may_be_movable() -> None:
    machine = parse_spec("2s1c pmem=2x1Gi:movable cxl=1Gi")

    assert machine.normal_nodes == NodeSet.of(0, 1, 4)
    assert [machine.distance(node, 2) for node in range(5)] == [17, 28, 10, 35, 31]


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("2", "2", id="a number alone"),
        pytest.param("2s2s1c", "2s2s1c", id="a letter twice"),
        pytest.param("0s1c", "0s1c", id="no socket"),
        pytest.param("0c", "0c", id="no core at all"),
        pytest.param("9999c", "9999c", id="more CPUs than Linux knows"),
        pytest.param("1025s", "1025s", id="more nodes than Linux knows"),
        pytest.param("1s cxl=999x1Gi pmem=25x1Gi", "1s", id="more with memory alone"),
        pytest.param("1c color=red", "color=red", id="an unknown word"),
        pytest.param("1c l3=1 l3=1", "l3=1", id="a word twice"),
        pytest.param("1c l3=0", "l3=0", id="groups of nothing"),
        pytest.param("1c memory=lots", "memory=lots", id="no quantity"),
        pytest.param("1c hbm=2x", "hbm=2x", id="a count without a size"),
        pytest.param("1c ids=1-2", "ids=1-2", id="too many ids"),
        pytest.param("1c ids=x", "ids=x", id="ids that are no list"),
        pytest.param("1c numbering=odd", "numbering=odd", id="an unknown numbering"),
        pytest.param("1c distances=a", "distances=a", id="distances without numbers"),
        pytest.param("1c hugepages=2Mi", "hugepages=2Mi", id="pages without a count"),
    ],
)
def test_bad_words_are_named(spec: str, word: str) -> None:
    with pytest.raises(BadMachineSpec) as caught:
        parse_spec(spec)

    assert caught.value.word == word
    assert repr(word) in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        pytest.param("1c offline=0", "no CPU is online", id="all offline"),
        pytest.param("2c offline=1 isolated=1", "CPU 1 is isolated", id="isolated"),
        pytest.param(
            "2s1c distances=10", "not a 2 by 2 matrix", id="too few distances"
        ),
        pytest.param("1c distances=9", "distance below 10", id="nearer than here"),
    ],
)
def test_contradicting_words_are_refused(spec: str, what: str) -> None:
    with pytest.raises(ContradictoryMachine, match=what):
        parse_spec(spec)
