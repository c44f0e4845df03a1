"""What isolated containers ask of CPUs and of interrupts."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.cpu.requests import CpuClassRequest
from nri_resmgr.classes.isolation.host import (
    cpu_class_requests,
    housekeeping_cpus,
    interrupt_free_cpus,
)
from nri_resmgr.classes.isolation.requests import (
    IrqBalancing,
    Isolated,
    IsolationRequest,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

CORES = parse_spec("1s4c2t memory=16Gi")  # CPU 0 and 4 are of one core


def isolated(cpus: str, request: IsolationRequest) -> Isolated:
    return Isolated("c", CpuSet.parse(cpus), request)


@pytest.mark.parametrize(
    ("cpus", "kept"),
    [
        pytest.param("0-1,4-5", "0,4", id="the first CPU and the thread beside it"),
        pytest.param("1-2,4", "1", id="a thread that is another one's stays that"),
        pytest.param("4", "4", id="the only CPU"),
    ],
)
def test_housekeeping_is_for_the_first_core(cpus: str, kept: str) -> None:
    assert housekeeping_cpus(CpuSet.parse(cpus), CORES) == CpuSet.parse(kept)


def test_cpus_are_quiet_as_far_as_their_containers_ask() -> None:
    found = interrupt_free_cpus(
        [
            isolated("0,4", IsolationRequest()),
            isolated("1,5", IsolationRequest(irq=IrqBalancing.DISABLED)),
            isolated("2-3,6-7", IsolationRequest(irq=IrqBalancing.HOUSEKEEPING)),
        ],
        CORES,
    )

    assert found == CpuSet.parse("1,3,5,7")
    assert interrupt_free_cpus([], CORES) == CpuSet()


def test_governors_and_idle_states_are_requests_for_cpus() -> None:
    found = cpu_class_requests(
        [
            isolated("0", IsolationRequest(unlimited=True)),
            isolated("1-2", IsolationRequest(governor="performance")),
            isolated("3", IsolationRequest(wake_latency="n/a")),
        ]
    )

    assert found == (
        CpuClassRequest(CpuSet.parse("1-2"), "performance", ""),
        CpuClassRequest(CpuSet.parse("3"), "", "n/a"),
    )
