"""Which of picks that touch as many groups wins."""

from __future__ import annotations

import pytest

from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

cpus = CpuSet.parse


@pytest.mark.parametrize(
    ("spec", "free", "count", "taken"),
    [
        pytest.param(
            "8c1t l3=3", "0-4,6-7", 4, "3-4,6-7", id="two tight caches, not a roomy one"
        ),
        pytest.param(
            "8c1t l3=3", "0-4,6-7", 5, "0-4", id="a roomy cache and the first tight one"
        ),
        pytest.param("8c1t l3=2", "0-7", 3, "0-2", id="the first of equal caches"),
        pytest.param("4c2t", "0-7", 3, "0-1,4", id="both threads of the first core"),
        pytest.param(
            "2s2c4t",
            "0,2-5,7,9,11,13",
            3,
            "3,7,11",
            id="the core in the tighter package, not the first one",
        ),
        pytest.param(
            "2s8c2t l3=4",
            "0,3,8,12,19,23-24,28,31",
            4,
            "8,12,24,28",
            id="two whole cores, though the other package is tighter",
        ),
        pytest.param(
            "2s2n6c2t l3=3",
            "1-2,5-9,11,14,16,18,21,23,25-26,29,31-35,38,40-43",
            20,
            "1-2,5-9,11,14,16,25-26,29,31-35,38,40",
            id="fewer cores, though caches leave more over than the fewest could",
        ),
        #  Cores {0,4,8,12} ... {3,7,11,15}, of which 4, 3, 3 and 2 are free.
        pytest.param(
            "1s4c4t",
            "0-9,12",
            6,
            "0,2,4,6,8,12",
            id="two cores of four threads that are used up",
        ),
        pytest.param(
            "1s4c4t",
            "0-10,12",
            6,
            "1-2,5-6,9-10",
            id="of two such pairs the one whose last core comes first",
        ),
        #  The first package's first CPU is offline, so its core comes last by number.
        pytest.param(
            "2s2c2t offline=0",
            "2,4",
            1,
            "4",
            id="the first package, though its CPU has the higher number",
        ),
        pytest.param(
            "2s4c2t l3=2 offline=0,1",
            "4,8-9,13",
            2,
            "8-9",
            id="its cache, too, though its CPUs have the higher numbers",
        ),
    ],
)
def test_the_tighter_and_then_the_first_wins(
    spec: str, free: str, count: int, taken: str
) -> None:
    pick = allocate_cpus(CpuRequest(count, cpus(free)), parse_spec(spec))

    assert pick.cpus == cpus(taken)


def test_a_core_has_room_for_what_is_free_though_not_near() -> None:
    #  Of core {0,4} both CPUs are free, of the others one.
    request = CpuRequest(3, cpus("0-1,3-4,6"), near=cpus("0-1,3,6"))

    assert allocate_cpus(request, parse_spec("4c2t")).cpus == cpus("1,3,6")
