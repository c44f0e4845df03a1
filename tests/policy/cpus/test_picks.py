"""CPUs that are picked from a set of free ones, machine by machine."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from nri_resmgr.policy.cpus import (
    CoreUse,
    CpuPick,
    CpuPriority,
    CpuRequest,
    CpusExhausted,
    PickReason,
    PickRule,
    PrioritySets,
    TopologyLevel,
    allocate_cpus,
)
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

cpus = CpuSet.parse

#  node 0: cores {0,8} ... {3,11}     node 1: cores {4,12} ... {7,15}
TWO_NODES = parse_spec("2s4c2t")

LOW, HIGH, ANY = CpuPriority.LOW, CpuPriority.HIGH, CpuPriority.ANY

SPILLED = PickReason(PickRule.SPILL, 1)
EVERYTHING = PickReason(PickRule.EVERYTHING, 1)


def tightest(candidates: int) -> PickReason:
    return PickReason(
        PickRule.TIGHTEST if candidates > 1 else PickRule.ONLY_GROUP, candidates
    )


@pytest.mark.parametrize(
    ("free", "taken", "level", "reason"),
    [
        pytest.param("0-15", "0,8", "core", tightest(8), id="a whole core"),
        pytest.param("1-15", "1,9", "core", tightest(7), id="not the broken core"),
        pytest.param("1-15", "8", "thread", tightest(15), id="the rest of a core"),
        pytest.param("1-15", "1,8-9", "cache", tightest(2), id="a core and a rest"),
        pytest.param("0-4,8-12", "0-1,8-9", "cache", tightest(1), id="one node"),
        pytest.param(
            "0-3,5-7,8-11,13-15",
            "5-7,13-15",
            "cache",
            tightest(2),
            id="the fuller node",
        ),
        pytest.param(
            "0-2,4-10,12-15",
            "4-7,12-15",
            "cache",
            tightest(1),
            id="a whole package",
        ),
        pytest.param(
            "0-2,4-6,8-10,12-14",
            "0-2,4,8-10,12",
            "machine",
            SPILLED,
            id="two nodes, for no node has room",
        ),
        pytest.param("3,11", "3,11", "core", EVERYTHING, id="all that is free"),
        pytest.param("2,7", "2,7", "machine", EVERYTHING, id="all, however far apart"),
        pytest.param("3,7", "", "thread", EVERYTHING, id="nothing at all"),
    ],
)
def test_keeps_groups_whole(
    free: str, taken: str, level: str, reason: PickReason
) -> None:
    wanted = cpus(taken)
    pick = allocate_cpus(CpuRequest(len(wanted), cpus(free)), TWO_NODES)

    assert pick == CpuPick(wanted, TopologyLevel(level), reason)


@pytest.mark.parametrize(
    ("spec", "free", "count", "taken"),
    [
        pytest.param("1c1t", "0", 1, "0", id="a machine of one CPU"),
        pytest.param("4c2t", "0-7", 3, "0-1,4", id="a desktop"),
        pytest.param(
            "4c2t offline=5-7", "0-4", 3, "0-1,4", id="siblings that are offline"
        ),
        pytest.param(
            "4c2t offline=4-7", "0-3", 2, "0-1", id="no second threads at all"
        ),
        pytest.param(
            "1s2n4c2t", "2-15", 4, "2-3,10-11", id="half of a sub-NUMA node first"
        ),
        pytest.param(
            "1s8c2t l3=2", "1-7,9-15", 4, "2-3,10-11", id="a whole L3 of an AMD socket"
        ),
        pytest.param(
            "1s8c2t l3=2",
            "1,3-7,9,11-15",
            6,
            "1,4-5,9,12-13",
            id="a whole L3 and a broken one rather than two whole ones",
        ),
        pytest.param("1s8c1t cluster=4", "1-7", 4, "4-7", id="a whole ARM cluster"),
        pytest.param("1s8c1t cluster=4", "1-7", 3, "1-3", id="the fuller ARM cluster"),
        pytest.param("1s2d2n2c1t", "1-7", 4, "4-7", id="a whole die"),
        pytest.param(
            "1s2d2n2c1t", "1-7", 2, "2-3", id="a whole node of the fuller die"
        ),
        pytest.param("2s2c1t ids=0,8", "0-3", 2, "0-1", id="nodes with ids far apart"),
        pytest.param(
            "2s3c2t offline=2,8,10-11",
            "0-1,3-7,9",
            3,
            "3-4,9",
            id="idle and built otherwise",
        ),
        pytest.param(
            "2s2c1t cxl=1x64Gi", "1-3", 2, "2-3", id="a memory-only node beside"
        ),
        pytest.param(
            "2s2c4t",
            "0-15",
            6,
            "0-1,4-5,8,12",
            id="a core of four threads, and half of one",
        ),
    ],
)
def test_knows_the_shape_of_the_machine(
    spec: str, free: str, count: int, taken: str
) -> None:
    pick = allocate_cpus(CpuRequest(count, cpus(free)), parse_spec(spec))

    assert pick.cpus == cpus(taken)


#  performance cores {0,1} {2,3} {4,5} {6,7}, efficient ones 8-11 and 12-15
HYBRID = parse_spec("4c2t8e")


@pytest.mark.parametrize(
    ("priority", "free", "count", "taken"),
    [
        pytest.param("normal", "0-15", 4, "0-3", id="two strong cores, not one module"),
        pytest.param("low", "0-15", 4, "8-11", id="a module of efficient cores"),
        pytest.param("low", "0-8,12-15", 2, "12-13", id="fewer modules than tighter"),
        pytest.param(
            "low", "0-9", 4, "0-1,8-9", id="strong ones where there is no more"
        ),
        pytest.param("normal", "6-15", 4, "6-9", id="efficient ones for the rest"),
        pytest.param("none", "0-15", 4, "8-11", id="one cluster without priority"),
    ],
)
def test_prefers_the_right_kind_of_core(
    priority: str, free: str, count: int, taken: str
) -> None:
    request = CpuRequest(count, cpus(free), priority=CpuPriority(priority))

    assert allocate_cpus(request, HYBRID).cpus == cpus(taken)


@pytest.mark.parametrize(("spread", "taken"), [(False, "0,2,6"), (True, "2-3,6")])
def test_spreads_into_the_roomiest_cores(*, spread: bool, taken: str) -> None:
    request = CpuRequest(3, cpus("0,2-3,6-7"), spread=spread)

    assert allocate_cpus(request, parse_spec("4c2t")).cpus == cpus(taken)


def test_the_right_kind_weighs_more_than_the_module_that_is_held() -> None:
    request = CpuRequest(2, cpus("0-7,9-15"), held=cpus("8"))

    assert allocate_cpus(request, HYBRID).cpus == cpus("0-1")


#  package 0: 0-19 and 40-59, package 1: 20-39 and 60-79
PRIORITIZED = parse_spec("2s20c2t")
_HIGH = cpus("2,5,8,15,17,42,45,48,55,57")
CLASSES = PrioritySets(_HIGH, cpus("0-19,40-59") - _HIGH)


@pytest.mark.parametrize(
    ("priority", "free", "count", "taken"),
    [
        pytest.param(HIGH, "2-3,10-25", 4, "2-3,15,17", id="all high ones, and a low"),
        pytest.param(HIGH, "2-3,10-14,20", 8, "2-3,10-14,20", id="all there are"),
        pytest.param(HIGH, "0-79", 4, "2,5,42,45", id="two high cores"),
        pytest.param(CpuPriority.NORMAL, "0-79", 2, "20,60", id="a normal core"),
        pytest.param(
            CpuPriority.NORMAL, "0,2,40,42", 2, "0,40", id="worse before better ones"
        ),
        pytest.param(LOW, "0-79", 4, "0-1,40-41", id="low cores, high ones left"),
        pytest.param(LOW, "2,5,20", 2, "2,5", id="one package before the class"),
    ],
)
def test_leaves_better_cpus_to_containers_that_request_them(
    priority: CpuPriority, free: str, count: int, taken: str
) -> None:
    request = CpuRequest(count, cpus(free), priority=priority, classes=CLASSES)

    assert allocate_cpus(request, PRIORITIZED).cpus == cpus(taken)


four = partial(CpuRequest, 4, cpus("0-3,8-11,4-5,12-13,7"))


@pytest.mark.parametrize(
    ("preferred", "taken"),
    [
        pytest.param(four(), "4-5,12-13", id="the tightest node"),
        pytest.param(four(spread=True), "0-1,8-9", id="the roomiest node"),
        pytest.param(
            four(cores=CoreUse.ONE_THREAD), "0-3", id="one thread of every core"
        ),
        pytest.param(
            four(cores=CoreUse.FRAGMENTS), "4-5,12-13", id="the tightest, searched for"
        ),
        pytest.param(
            four(cores=CoreUse.FRAGMENTS, spread=True),
            "0-1,8-9",
            id="the roomiest, searched for",
        ),
        pytest.param(four(near=cpus("8-11")), "8-11", id="near ones"),
        pytest.param(four(near=cpus("1")), "0-1,8-9", id="beside the only near one"),
        pytest.param(four(far=cpus("4,12")), "0-1,8-9", id="not the far ones"),
        pytest.param(
            four(far=cpus("0-5,8-13")), "4-5,7,12", id="the far ones if it must be"
        ),
        pytest.param(four(near=cpus("0-5"), far=cpus("0-3")), "0-1,4-5", id="both"),
        pytest.param(four(held=cpus("0")), "0-1,8-9", id="beside what is held"),
    ],
)
def test_follows_preferences(preferred: CpuRequest, taken: str) -> None:
    assert allocate_cpus(preferred, TWO_NODES).cpus == cpus(taken)


@pytest.mark.parametrize(
    ("use", "count", "taken"),
    [
        pytest.param(CoreUse.WHOLE, 2, "2,6", id="a whole core"),
        pytest.param(CoreUse.FRAGMENTS, 2, "0-1", id="two rests of cores"),
        pytest.param(CoreUse.FRAGMENTS, 3, "0,2,6", id="one core broken, not two"),
        pytest.param(CoreUse.ONE_THREAD, 3, "0-2", id="three cores"),
        pytest.param(CoreUse.ONE_THREAD, 5, "0-3,6", id="all cores, one of them twice"),
    ],
)
def test_uses_cores_as_set(use: CoreUse, count: int, taken: str) -> None:
    #  cores {0,4} and {1,5} have one free thread, {2,6} and {3,7} are idle
    request = CpuRequest(count, cpus("0-3,6-7"), cores=use)

    assert allocate_cpus(request, parse_spec("4c2t")).cpus == cpus(taken)


def test_a_core_that_the_near_cpu_breaks_is_not_idle_any_more() -> None:
    near = CpuRequest(2, cpus("0,4-5"), near=cpus("0"), cores=CoreUse.FRAGMENTS)

    assert allocate_cpus(near, parse_spec("4c2t")).cpus == cpus("0,4")


def test_counts_near_and_far_cpus_of_the_pick() -> None:
    request = CpuRequest(3, cpus("0-15"), near=cpus("0,8"), far=cpus("1,9"))

    assert allocate_cpus(request, TWO_NODES).reason == PickReason(
        PickRule.TIGHTEST, candidates=2, near=2, far=0
    )


def test_refuses_with_the_numbers() -> None:
    with pytest.raises(CpusExhausted) as refusal:
        allocate_cpus(CpuRequest(3, cpus("0,4")), TWO_NODES)

    assert str(refusal.value) == "wanted 3 CPUs, 2 free (0,4)"


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda: CpuRequest(-1, cpus("0")), id="fewer than none"),
        pytest.param(
            lambda: allocate_cpus(CpuRequest(1, cpus("15-16")), TWO_NODES),
            id="a CPU that the machine does not have",
        ),
        pytest.param(
            lambda: PrioritySets(cpus("0-1"), cpus("1-2")), id="both high and low"
        ),
    ],
)
def test_a_callers_bug_is_a_value_error(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match="CPU"):
        wrong()


def test_equal_models_give_equal_picks() -> None:
    other: Machine = msgspec.structs.replace(TWO_NODES)
    request = CpuRequest(5, cpus("1-14"))

    assert allocate_cpus(request, other) == allocate_cpus(request, TWO_NODES)
