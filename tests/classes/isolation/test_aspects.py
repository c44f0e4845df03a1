"""What is isolated of a container, by what its annotations say."""

from __future__ import annotations

from typing import Any

import pytest

from nri_resmgr.classes.isolation.aspects import aspects_of, isolations_of
from nri_resmgr.classes.isolation.requests import (
    IrqBalancing,
    Isolated,
    IsolationRequest,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

MACHINE = parse_spec("1s4c2t memory=8Gi")
OWN, WHERE = CpuSet.parse("1-2,5-6"), CpuSet.parse("1-3,5-7")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        pytest.param({}, (), id="nothing"),
        pytest.param(
            {"unbalanced": True},
            ("load-balancing", "disable", "1-2,5-6"),
            id="no load balancing",
        ),
        pytest.param(
            {"unlimited": True}, ("quota", "disable", "1-2,5-6"), id="no quota"
        ),
        pytest.param(
            {"irq": IrqBalancing.DISABLED},
            ("interrupts", "disable", "1-2,5-6"),
            id="no interrupts",
        ),
        pytest.param(
            {"irq": IrqBalancing.HOUSEKEEPING},
            ("interrupts", "housekeeping", "2,6"),
            id="interrupts on the first core",
        ),
        pytest.param(
            {"wake_latency": "0"},
            ("c-states", "enable", "1-2,5-6"),
            id="all idle states",
        ),
        pytest.param(
            {"wake_latency": "n/a"},
            ("c-states", "disable", "1-2,5-6"),
            id="no idle states",
        ),
        pytest.param(
            {"wake_latency": "10"},
            ("c-states", "max_latency:10", "1-2,5-6"),
            id="short idle states",
        ),
        pytest.param(
            {"governor": "performance"},
            ("governor", "performance", "1-2,5-6"),
            id="a governor",
        ),
        pytest.param(
            {"shared": True}, ("shared-cpus", "enable", "3,7"), id="shared CPUs"
        ),
    ],
)
def test_each_annotation_is_reported_alone(
    asked: dict[str, Any], found: tuple[str, ...]
) -> None:
    one = Isolated("c1", OWN, IsolationRequest(**asked))
    rows = [
        (each.what.value, each.setting, str(each.cpus))
        for each in isolations_of(one, WHERE, MACHINE)
    ]

    assert rows == ([found] if found else [])
    assert [each.value for each in aspects_of(one.request)] == [row[0] for row in rows]
