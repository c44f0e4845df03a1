"""Metrics of what is wanted of a host, and of what became of it."""

from __future__ import annotations

import pytest

from nri_resmgr.app.metrics.of_host import series_of_host
from nri_resmgr.app.metrics.text import render
from nri_resmgr.classes.isolation.requests import (
    IrqBalancing,
    Isolated,
    IsolationRequest,
)
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values import CpuSet
from tests.app.host_rig import Host, host, quiet, wish
from tests.daemon.host_nodes import POLICIES

pytestmark = pytest.mark.slow


USE = quiet("2-3", wish("3", ("*eth0*",)))
PREFERENCE = f"{POLICIES}/policy3/energy_performance_preference"


def values(use: HostUse, some: Host | None) -> dict[str, str]:
    """Return the values, by name and labels."""
    text = render(series_of_host(use, some.reconciler if some else None))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = (line.rsplit(" ", 1) for line in lines)
    return {name.removeprefix("nri_resmgr_"): value for name, value in rows}


async def test_desired_and_applied_settings_are_counted() -> None:
    with host() as some:
        (some.root / PREFERENCE[1:]).unlink()
        await some.follow(USE)
        some.set(f"{POLICIES}/policy2/scaling_max_freq", "900000")
        await some.follow(USE, looks=True)

        assert values(USE, some) == {
            'cpu_class_cpus{class="quiet"}': "2",
            "isolation_ineffective_containers": "0",
            'interrupts{state="placed"}': "1",
            'interrupts{state="unplaced"}': "0",
            'interrupts{state="refused"}': "0",
            'host_files{state="wanted"}': "5",
            'host_files{state="failed"}': "1",
            'host_files{state="drifted"}': "1",
            'host_files{state="abandoned"}': "0",
            'host_writes_total{result="written"}': "4",
            'host_writes_total{result="restored"}': "0",
            'host_writes_total{result="failed"}': "2",
            "host_drift_total": "1",
            "host_settings_applied": "1",
        }


async def test_a_host_that_is_left_as_it_is_is_reported() -> None:
    with host(state=None) as some:
        await some.follow(USE)

        assert values(USE, some)["host_settings_applied"] == "0"


async def test_isolated_containers_are_counted_by_aspect() -> None:
    wishes = (
        IsolationRequest(unbalanced=True, governor="performance"),
        IsolationRequest(governor="powersave", irq=IrqBalancing.DISABLED),
    )
    use = HostUse(
        isolated=tuple(
            Isolated(f"c{cpu}", CpuSet.of(cpu), wish)
            for cpu, wish in enumerate(wishes, start=2)
        ),
        available=CpuSet.of(*range(8)),
    )
    with host() as some:
        await some.follow(use)
        found = values(use, some)

    assert {name: n for name, n in found.items() if "isolat" in name} == {
        'isolated_containers{what="governor"}': "2",
        'isolated_containers{what="interrupts"}': "1",
        'isolated_containers{what="load-balancing"}': "1",
        "isolation_ineffective_containers": "0",
    }


def test_without_desired_settings_there_are_no_metrics() -> None:
    assert values(HostUse(), None) == {}
