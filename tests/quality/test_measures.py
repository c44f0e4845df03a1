"""Measures of placements, with examples that can be counted by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ONE_CPU, Bytes, CpuSet, MilliCpus, NodeSet, QosClass
from tests.quality.__main__ import measure
from tests.quality.exhaustive import ExhaustiveNode
from tests.quality.life import Arrival
from tests.quality.measures import Watched, short_of
from tests.quality.node import Place


class Scripted:
    """Places containers where a test says."""

    def __init__(self, *steps: Mapping[int, Place]) -> None:
        self._steps = list(steps)

    def create(self, one: Arrival) -> bool:
        return one.number in self._steps[0]

    def stop(self, one: Arrival) -> None:
        assert one.number not in self._steps[0]

    def places(self) -> Mapping[int, Place]:
        return self._steps.pop(0)


def asking(number: int, cpus: float, qos: QosClass = QosClass.GUARANTEED) -> Arrival:
    request = MilliCpus(int(cpus * ONE_CPU))
    row = ContainerRow(qos=qos, request=request, memory=Bytes(1 << 20))
    return Arrival(number, 0.0, 60.0, row)


def own(cpus: str, mems: str = "") -> Place:
    found = CpuSet.parse(cpus)
    return Place(found, found, NodeSet.parse(mems))


def shared(cpus: str) -> Place:
    return Place(CpuSet.parse(cpus), CpuSet())


def test_places_are_measured() -> None:
    first = {0: own("0-1", "0")}  # one thread each of two cores
    second = first | {1: own("3,5-6", "0-1")}  # both nodes
    third = second | {2: shared("2,4,7")}
    last = {1: own("3,5-6", "0-1"), 2: shared("0-2,4,7")}
    node = Watched(parse_spec("2s1n2c2t"), Scripted(first, second, third, last))

    assert node.create(asking(0, 2))
    assert node.create(asking(1, 3))
    assert node.create(asking(2, 4.0, QosClass.BURSTABLE))
    node.stop(asking(0, 2))
    found = node.measured

    assert (found.sent, found.refused, found.events) == (3, 0, 4)
    assert (found.exclusive, found.in_one_node) == (2, 1)
    assert (found.granted, found.cores_above) == (2, 2)
    assert (found.moved, found.updates) == (0, 1)
    assert (found.asked, found.short) == (4000, 1000)


@pytest.mark.parametrize(
    ("demands", "expected"),
    [
        ([("0-1", 1500)], 0),
        ([("0-1", 1500), ("0-1", 700)], 200),
        ([("0-3", 2500), ("0-1", 1500)], 0),
        ([("0-3", 2500), ("0-1", 2500)], 1000),
        ([("0-1", 2500), ("2-3", 100)], 500),
    ],
)
def test_shared_time_is_short_by_what_no_cpu_has(
    demands: list[tuple[str, int]], expected: int
) -> None:
    assert short_of((CpuSet.parse(cpus), one) for cpus, one in demands) == expected


def test_the_search_prefers_whole_cores_of_one_node() -> None:
    node = ExhaustiveNode(parse_spec("2s1n2c2t"))
    assert node.create(asking(0, 2))

    assert len(node.places()[0].own) == 2
    cores = [one.cpus for one in parse_spec("2s1n2c2t").cores]
    assert node.places()[0].own in cores


def test_equal_seeds_have_equal_lives() -> None:
    first, second = (
        measure("2s1n4c2t memory=32Gi", "topology-aware", 0.9, 5) for _ in range(2)
    )

    assert first == second
    assert first.sent > 50
