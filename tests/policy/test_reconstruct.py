from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nri_resmgr.policy.reconstruct import (
    CgroupValues,
    Requests,
    contradiction,
    reconstruct,
)
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, MilliCpus, QosClass

GIB = 1 << 30
NODE = Bytes(64 * GIB)
G, B, E = QosClass.GUARANTEED, QosClass.BURSTABLE, QosClass.BEST_EFFORT
PAGES = (HugePages(Bytes(2 << 20), 3),)


def asked(
    cpu: int = 0, limit: int | None = None, memory: int = 0, most: int | None = None
) -> Requests:
    return Requests(
        cpu=MilliCpus(cpu),
        cpu_limit=None if limit is None else MilliCpus(limit),
        memory=Bytes(memory),
        memory_limit=None if most is None else Bytes(most),
    )


TWO = CgroupValues(
    shares=2048, quota=200_000, period=100_000, memory_limit=GIB, oom_score_adj=-997
)


@pytest.mark.parametrize(
    ("values", "qos", "requests"),
    [
        pytest.param(CgroupValues(), E, asked(), id="no values, no request"),
        pytest.param(
            TWO, G, asked(2000, 2000, GIB, GIB), id="Guaranteed asks for its limits"
        ),
        pytest.param(
            msgspec.structs.replace(TWO, quota=-1),
            G,
            asked(2000, None, GIB, GIB),
            id="Guaranteed without a quota asks for its shares",
        ),
        pytest.param(
            msgspec.structs.replace(TWO, shares=0),
            G,
            asked(2000, 2000, GIB, GIB),
            id="Guaranteed without shares asks for its quota",
        ),
        pytest.param(
            msgspec.structs.replace(TWO, shares=512, quota=150_000),
            G,
            asked(1500, 1500, GIB, GIB),
            id="the weight of a mixed grant does not hide the request",
        ),
        pytest.param(
            msgspec.structs.replace(TWO, shares=512, quota=400_000),
            G,
            asked(500, 4000, 0, GIB),
            id="limits of a Guaranteed pod are not the container's request",
        ),
        pytest.param(
            msgspec.structs.replace(TWO, shares=262_144, quota=30_000_000),
            G,
            asked(300_000, 300_000, GIB, GIB),
            id="above the most shares the quota counts",
        ),
        pytest.param(
            CgroupValues(shares=102, quota=50_000, oom_score_adj=984),
            B,
            asked(100, 500, 16 * NODE // 1000 + 1),
            id="Burstable memory comes from the OOM score",
        ),
        pytest.param(
            CgroupValues(shares=102, memory_limit=GIB, oom_score_adj=984),
            B,
            asked(100, None, 0, GIB),
            id="a score that says more than the limit says nothing",
        ),
        pytest.param(
            CgroupValues(memory_limit=NODE // 2, oom_score_adj=500),
            B,
            asked(0, None, 0, NODE // 2),
            id="a score that says as much as the limit says nothing either",
        ),
        pytest.param(
            CgroupValues(shares=102, oom_score_adj=-997),
            B,
            asked(100),
            id="the score of a critical pod says nothing",
        ),
        pytest.param(
            CgroupValues(oom_score_adj=500, shares=2),
            E,
            asked(),
            id="BestEffort asks for nothing, whatever its score",
        ),
        pytest.param(
            CgroupValues(memory_floor=5, oom_score_adj=984, memory_limit=GIB),
            B,
            asked(0, None, 5, GIB),
            id="what memory QoS says beats the score",
        ),
        pytest.param(
            CgroupValues(hugepages=PAGES),
            B,
            msgspec.structs.replace(asked(), hugepages=PAGES),
            id="huge pages are as given",
        ),
        pytest.param(
            CgroupValues(memory_limit=-1), G, asked(), id="an unlimited memory limit"
        ),
    ],
)
def test_requests_are_reconstructed_from_values(
    values: CgroupValues, qos: QosClass, requests: Requests
) -> None:
    assert reconstruct(values, qos, NODE) == requests


def test_without_the_size_of_the_node_scores_report_nothing() -> None:
    values = CgroupValues(oom_score_adj=500)

    assert reconstruct(values, B, Bytes(0)) == asked()
    assert contradiction(asked(memory=GIB), values, B, Bytes(0)) == ""


EXACT = asked(1, 1500, GIB, 2 * GIB)
AGREEING = CgroupValues(
    shares=2,
    quota=150_000,
    period=100_000,
    memory_limit=2 * GIB,
    memory_floor=GIB,
    oom_score_adj=985,
    hugepages=(),
)


def test_values_that_agree() -> None:
    assert contradiction(EXACT, AGREEING, B, NODE) == ""


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param(
            {"shares": 1024}, "cpu.shares is 1024, expected 2", id="other shares"
        ),
        pytest.param(
            {"quota": 100_000},
            "cpu quota is 100000, expected 150000",
            id="another quota",
        ),
        pytest.param(
            {"period": 50_000},
            "cpu quota is 150000, expected 75000",
            id="another period",
        ),
        pytest.param(
            {"memory_limit": GIB},
            f"memory limit is {GIB}, expected {2 * GIB}",
            id="another memory limit",
        ),
        pytest.param(
            {"memory_floor": 1},
            f"memory.min or memory.low is 1, expected {GIB}",
            id="another memory request",
        ),
        pytest.param(
            {"oom_score_adj": 983},
            "oom_score_adj is 983, expected 985",
            id="a score of more memory",
        ),
        pytest.param(
            {"oom_score_adj": 987},
            "oom_score_adj is 987, expected 985",
            id="a score of less memory",
        ),
        pytest.param(
            {"hugepages": PAGES},
            "hugepage limit is 3 of 2097152 bytes, expected none",
            id="huge pages",
        ),
    ],
)
def test_the_value_that_differs_is_named(values: dict[str, Any], sentence: str) -> None:
    other = msgspec.structs.replace(AGREEING, **values)

    assert contradiction(EXACT, other, B, NODE) == sentence


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"shares": 0}, id="shares"),
        pytest.param({"quota": 0, "period": 0}, id="quota"),
        pytest.param({"quota": -1}, id="the quota that was dropped"),
        pytest.param({"memory_limit": 0}, id="memory limit"),
        pytest.param({"memory_floor": 0}, id="memory QoS"),
        pytest.param({"oom_score_adj": None}, id="OOM score"),
        pytest.param({"oom_score_adj": -997}, id="the score of a critical pod"),
        pytest.param({"oom_score_adj": 984}, id="a score that is rounded otherwise"),
        pytest.param({"hugepages": None}, id="huge pages"),
    ],
)
def test_missing_values_do_not_contradict(values: dict[str, Any]) -> None:
    assert (
        contradiction(EXACT, msgspec.structs.replace(AGREEING, **values), B, NODE) == ""
    )


@pytest.mark.parametrize(
    ("given", "values"),
    [
        pytest.param(
            asked(100), CgroupValues(quota=50_000), id="a limit without a value"
        ),
        pytest.param(
            asked(100), CgroupValues(memory_limit=1), id="an unreported memory limit"
        ),
    ],
)
def test_limits_out_of_nowhere_contradict(
    given: Requests, values: CgroupValues
) -> None:
    assert "expected none" in contradiction(given, values, B, NODE)


@pytest.mark.parametrize(
    ("score", "agrees"),
    [
        pytest.param(3, True, id="much lower"),
        pytest.param(985, True, id="equal"),
        pytest.param(987, False, id="higher"),
    ],
)
def test_a_sidecars_score_may_only_be_lower(score: int, *, agrees: bool) -> None:
    values = CgroupValues(oom_score_adj=score)
    said = contradiction(EXACT, values, B, NODE, own_oom_score=False)

    assert (said == "") is agrees


def test_a_mixed_grants_weight_does_not_contradict() -> None:
    assert contradiction(asked(1500, 1500), CgroupValues(shares=512), G, NODE) == ""


def test_a_fraction_is_no_mixed_grant() -> None:
    assert contradiction(asked(500), CgroupValues(shares=2), B, NODE) != ""
