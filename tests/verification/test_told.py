"""What people and programs are told of a node that is verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.app.metrics.of_host import series_of_verification
from nri_resmgr.app.metrics.text import render
from nri_resmgr.app.observing.sessions import SessionTracker
from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.state import state_of
from nri_resmgr.log.levels import LogLevels
from nri_resmgr.stub import RuntimeInfo
from tests.control.daemon_parts import BEGIN, STATUS
from tests.control.json_schema import mistakes
from tests.verification.fake_host import ONLY_TELLS, FakeHost


async def _nothing() -> None:
    """Reload nothing."""


def view_of_daemon(node: FakeHost) -> DaemonView:
    return DaemonView(
        policy=node.policy,
        history=node.history,
        sessions=SessionTracker(node.history, lambda: BEGIN),
        tree=node.tree,
        runtime=lambda: RuntimeInfo("containerd", "2.1.0"),
        plugin="90-resource-policy",
        started=BEGIN,
        dry_run=False,
        levels=LogLevels(),
        configuration=lambda: STATUS,
        reload=_nothing,
        kubelet=tuple,
        verification=lambda: node.verification,
    )


def node_in(root: Path) -> FakeHost:
    """Make one with a container that somebody has touched, and another one."""
    node = FakeHost(root, now=lambda: 0, options=ONLY_TELLS)
    node.policy.synchronize([], [])
    node.create("web", 2)
    node.create("log", 0.5)
    node.write("web", cpus="0-7", asked="0-7")
    return node


async def state_in(root: Path) -> dict[str, Any]:
    node = node_in(root)
    await node.verification.round()
    return state_of(view_of_daemon(node))


async def test_programs_are_told_as_the_schema_says(tmp_path: Path) -> None:
    state = await state_in(tmp_path)
    last = state["verification"].pop("last")
    log, web = (one["verification"] for one in state["containers"])

    assert state["verification"] == {
        "intervalSeconds": 30.0,
        "repairs": False,
        "rounds": 1,
        "containers": {"as-decided": 1, "drifted": 1},
    }
    assert web == {
        "verdict": "drifted",
        "differences": [{"kind": "cpus", "wanted": "4-5", "found": "0-7"}],
        "why": "",
        "repairs": 0,
        "abandoned": False,
    }
    assert log["verdict"] == "as-decided"
    state["verification"]["last"] = last
    assert mistakes(state, "State") == []


async def test_people_see_it_in_the_status(tmp_path: Path) -> None:
    state = await state_in(tmp_path)
    state["verification"]["last"] = "TIME"
    lines = render_status(state).splitlines()

    assert "verified       1 as-decided, 1 drifted at TIME; every 30 s" in lines
    assert [line.split("  ")[-1].strip() for line in lines[-3:]] == [
        "in force",
        "as-decided",
        "drifted: cpus 0-7",
    ]


def test_before_the_first_round_nothing_is_known(tmp_path: Path) -> None:
    lines = render_status(state_of(view_of_daemon(node_in(tmp_path)))).splitlines()

    assert "verified       not yet; every 30 s" in lines
    assert lines[-1].endswith("pending")


async def test_people_see_it_in_an_explanation(tmp_path: Path) -> None:
    node = node_in(tmp_path)
    await node.verification.round()
    text = render_explanation(explanation_of(view_of_daemon(node), "shop/web", ""))

    assert "  kernel drifted: cpus 0-7" in text.splitlines()


async def test_counters_and_gauges(tmp_path: Path) -> None:
    node = node_in(tmp_path)
    await node.verification.round()
    lines = render(series_of_verification(node.verification)).splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    assert float(told.pop("nri_resmgr_verification_seconds")) > 0
    assert float(told.pop("nri_resmgr_verification_timestamp_seconds")) == (
        pytest.approx(node.verification.ended / 1e9)
    )
    assert told == {
        'nri_resmgr_verified_containers{verdict="as-decided"}': "1",
        'nri_resmgr_verified_containers{verdict="drifted"}': "1",
        "nri_resmgr_drift_repairs_total": "0",
        "nri_resmgr_drift_abandoned_total": "0",
    }
