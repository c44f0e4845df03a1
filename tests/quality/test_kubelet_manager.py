"""The model of the kubelet's managers follows their documented rules."""

from __future__ import annotations

import pytest

from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ONE_CPU, CpuSet, MilliCpus, QosClass
from tests.quality.kubelet_manager import BEST_EFFORT, SINGLE_NUMA_NODE, KubeletNode
from tests.quality.life import Arrival


def asking(number: int, cpus: float) -> Arrival:
    request = MilliCpus(int(cpus * ONE_CPU))
    row = ContainerRow(qos=QosClass.GUARANTEED, request=request)
    return Arrival(number, 0.0, 60.0, row)


def placed(machine: str, policy: str, *amounts: float) -> list[str]:
    """Return the CPUs of containers, by number; empty for a refused one."""
    node = KubeletNode(parse_spec(machine), policy)
    for number, cpus in enumerate(amounts):
        node.create(asking(number, cpus))
    places = node.places()
    return [str(places[n].cpus) if n in places else "" for n in range(len(amounts))]


@pytest.mark.parametrize(
    ("machine", "amounts", "expected"),
    [
        pytest.param("1s1n4c2t", (2, 2), ["1,5", "2,6"], id="whole cores"),
        pytest.param("1s1n4c2t", (1, 1), ["4", "1"], id="a core in use first"),
        pytest.param(
            "1s1n4c2t", (2, 0.5), ["1,5", "0,2-4,6-7"], id="the rest is shared"
        ),
        pytest.param("2s1n4c1t", (4,), ["4-7"], id="a node that is whole"),
        pytest.param("2s1n4c1t", (2, 2), ["1-2", "4-5"], id="one node has room"),
        pytest.param("2s1n4c1t", (2, 3, 2), ["1-2", "4-6", "3,7"], id="none has room"),
        pytest.param("1s1n2c1t", (2,), [""], id="reserved CPUs are not given"),
    ],
)
def test_exclusive_cpus_are_those_of_the_rules(
    machine: str, amounts: tuple[float, ...], expected: list[str]
) -> None:
    assert placed(machine, BEST_EFFORT, *amounts) == expected


def test_a_container_that_spans_nodes_is_refused_where_that_is_asked_for() -> None:
    assert placed("2s1n4c1t", SINGLE_NUMA_NODE, 2, 3, 2) == ["1-2", "4-6", ""]


def test_cpus_come_back() -> None:
    node = KubeletNode(parse_spec("1s1n4c1t"), BEST_EFFORT)
    assert node.create(asking(0, 3))
    assert not node.create(asking(1, 1))
    node.stop(asking(0, 3))

    assert node.create(asking(2, 1))
    assert node.places()[2].own == CpuSet.of(1)
