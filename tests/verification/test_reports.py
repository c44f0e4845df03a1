"""Reports about a verified node: state, status, explanations, metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.app.metrics.of_host import series_of_verification
from nri_resmgr.app.metrics.text import render
from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.state import state_of
from tests.control.daemon_parts import daemon_view
from tests.control.json_schema import mistakes
from tests.verification.fake_host import ONLY_TELLS, FakeHost


def view_of_daemon(node: FakeHost) -> DaemonView:
    return daemon_view(
        node.policy,
        node.history,
        tree=node.tree,
        verification=lambda: node.verification,
    )


def node_in(root: Path) -> FakeHost:
    """Make one with a container that another program changed, and another one."""
    node = FakeHost(root, now=lambda: 0, options=ONLY_TELLS)
    node.policy.synchronize([], [])
    node.create("web", 2)
    node.create("log", 0.5)
    node.write("web", cpus="0-7", requested="0-7")
    return node


async def state_in(root: Path) -> dict[str, Any]:
    node = node_in(root)
    await node.verification.round()
    return state_of(view_of_daemon(node))


async def test_the_state_is_as_the_schema_has_it(tmp_path: Path) -> None:
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


async def test_the_status_has_it(tmp_path: Path) -> None:
    state = await state_in(tmp_path)
    state["verification"]["last"] = "TIME"
    lines = render_status(state).splitlines()

    assert "verified       1 as-decided, 1 drifted at TIME; every 30 s" in lines
    assert [line.split("  ")[-1].strip() for line in lines[-3:]] == [
        "in force",
        "as-decided",
        "drifted: cpus 0-7",
    ]


def test_before_the_first_round_nothing_is_reported(tmp_path: Path) -> None:
    lines = render_status(state_of(view_of_daemon(node_in(tmp_path)))).splitlines()

    assert "verified       not yet; every 30 s" in lines
    assert lines[-1].endswith("pending")


async def test_an_explanation_has_it(tmp_path: Path) -> None:
    node = node_in(tmp_path)
    await node.verification.round()
    text = render_explanation(explanation_of(view_of_daemon(node), "shop/web", ""))

    assert "  verified drifted: cpus 0-7" in text.splitlines()


async def test_counters_and_gauges(tmp_path: Path) -> None:
    node = node_in(tmp_path)
    await node.verification.round()
    lines = render(series_of_verification(node.verification)).splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    assert float(found.pop("nri_resmgr_verification_seconds")) > 0
    assert float(found.pop("nri_resmgr_verification_timestamp_seconds")) == (
        pytest.approx(node.verification.ended / 1e9)
    )
    assert found == {
        'nri_resmgr_verified_containers{verdict="as-decided"}': "1",
        'nri_resmgr_verified_containers{verdict="drifted"}': "1",
        "nri_resmgr_drift_repairs_total": "0",
        "nri_resmgr_drift_abandoned_total": "0",
    }
