"""Answers say what is decided, in force, recorded, and what waits for what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nri_proto import NriLevel
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.sessions import SessionTracker
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.running.delivery import ByRuntime
from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import RuntimeInfo
from tests.app.node import SAFE, UNSAFE, config
from tests.control.daemon_parts import ask, asking_view, daemon_view
from tests.control.json_schema import mistakes
from tests.running.node import CgroupNode, cgroup_node
from tests.waiting import until

NARROW = "{reservedResources: {cpu: 3}, pinCPU: true, pinMemory: true}"


def view_of(node: CgroupNode) -> DaemonView:
    """Make what the control socket is about; a reload reserves two more CPUs."""
    history = History()
    sessions = SessionTracker(history)
    sessions.registered(RuntimeInfo())
    sessions.synchronized()

    async def reload(*, force: bool) -> None:
        assert not force
        reconfigure(node.plugin, parse_config(config(NARROW)))

    return daemon_view(
        node.plugin, history, sessions=sessions, tree=node.tree, reload=reload
    )


def spoil(node: CgroupNode, name: str) -> None:
    """Make the cgroup of a container one that cannot be written."""
    file = node.path(name) / "cpuset.cpus"
    file.unlink()
    file.mkdir()


def decided(node: CgroupNode, name: str) -> str:
    pin = node.plugin.wanted(name)
    assert pin is not None
    return str(pin.cpus)


def only(explanation: dict[str, Any]) -> dict[str, Any]:
    assert mistakes(explanation, "Explanation") == []
    (one,) = explanation["containers"]
    found: dict[str, Any] = one
    return found


def line(title: str, explanation: dict[str, Any]) -> str:
    """Return what people read under a title; empty if there is no such line."""
    lines = render_explanation(explanation).splitlines()
    found = (one for one in lines if one.startswith(f"  {title:<8} "))
    return next((one[11:] for one in found), "")


async def test_an_explanation_has_the_values_of_kernel_and_runtime(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=SAFE) as node:
        await node.run("shared", 0.5)
        before = node.recorded("shared")
        # It has taken more; the folder has in force what is written here.
        await node.run("exclusive", 2)
        effective = node.path("shared") / "cpuset.cpus.effective"
        async with asking_view(view_of(node), tmp_path) as client:
            early = await ask(client, "/v1/explain", pod="shared")
            effective.write_text(f"{decided(node, 'shared')}\n")
            late = await ask(client, "/v1/explain", pod="shared")

    one = only(early)
    assert one["container"]["cpus"] == decided(node, "shared") != before
    assert one["inForce"]["cpus"] == before
    assert one["container"]["delivery"]["recorded"]["cpus"] == before
    assert line("kernel", early) == f"CPUs {before}; memory of nodes 0"
    assert line("runtime", early) == f"CPUs {before}; memory of nodes 0"
    assert line("kernel", late) == "as decided"


async def test_updates_pending_for_a_request_are_counted_with_their_reason(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.run("shared", 0.5)
        spoil(node, "shared")
        async with asking_view(view_of(node), tmp_path) as client:
            reloaded = await asyncio.to_thread(client.post, "/v1/reload")
            await until(lambda: bool(node.delivery.by_runtime()))
            state = await ask(client, "/v1/state")
            explained = await ask(client, "/v1/explain", pod="shared")
            await node.run("other", 0.1)  # whose reply carries the update
            after = await ask(client, "/v1/state")

    assert mistakes(reloaded, "Reloaded") == mistakes(state, "State") == []
    assert reloaded["pendingUpdates"]["count"] == state["pendingUpdates"]["count"] == 1
    assert state["pendingUpdates"]["oldestSeconds"] > 0
    assert state["applyUpdates"]["by"] == "cgroup"
    assert state["applyUpdates"]["byRuntime"] == 1
    assert line("pending", explained).startswith("for ")
    assert "this runtime takes updates in replies only" in line("pending", explained)
    assert "cpuset.cpus" in line("updates", explained)
    assert "1 container by the runtime: shop/shared/shared: " in render_status(state)
    assert after["pendingUpdates"] == {"count": 0, "oldestSeconds": 0.0}


async def test_a_reload_is_answered_when_its_values_are_in_force(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.run("shared", 0.5)
        before = node.cpus("shared")
        async with asking_view(view_of(node), tmp_path) as client:
            reloaded = await asyncio.to_thread(client.post, "/v1/reload")

        assert reloaded["pendingUpdates"]["count"] == 0
        assert node.cpus("shared") == decided(node, "shared") != before


async def test_record_updates_that_are_pending_are_counted(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.run("shared", 0.5)
        await node.run("exclusive", 2)
        await until(lambda: node.cpus("shared") == decided(node, "shared"))
        async with asking_view(view_of(node), tmp_path) as client:
            await until(lambda: node.plugin.updates.pending.records == 1)
            early = await ask(client, "/v1/state")
            await node.run("other", 0.1)
            await node.stop("other")  # whose reply carries the update
            late = await ask(client, "/v1/state")

    assert early["pendingUpdates"]["count"] == 0  # it is in force
    assert early["recordUpdates"]["count"] == 1
    assert early["recordUpdates"]["oldestSeconds"] > 0
    assert "1 record update pending, the oldest for " in render_status(early)
    assert node.recorded("shared") == decided(node, "shared")
    assert late["recordUpdates"] == {"count": 0, "oldestSeconds": 0.0}


@pytest.mark.parametrize("level", [SAFE, UNSAFE])
async def test_a_pending_value_is_not_shown_as_recorded(
    level: NriLevel, tmp_path: Path
) -> None:
    async with cgroup_node(tmp_path, level=level) as node:
        node.plugin.use_delivery(ByRuntime(node.plugin, "it is a test"))
        await node.run("shared", 0.5)
        reconfigure(node.plugin, parse_config(config(NARROW)))
        async with asking_view(view_of(node), tmp_path) as client:
            early = only(await ask(client, "/v1/explain", pod="shared"))
            if level is UNSAFE:
                await node.run("other", 0.1)  # whose reply carries the update
            await until(lambda: node.recorded("shared") == decided(node, "shared"))
            late = only(await ask(client, "/v1/explain", pod="shared"))
            state = await ask(client, "/v1/state")

    if level is UNSAFE:  # by a call it may have gone already
        assert early["container"]["delivery"]["recorded"] is None
        assert early["container"]["delivery"]["waitingSeconds"] > 0
    assert late["container"]["delivery"]["recorded"]["cpus"] == node.recorded("shared")
    assert state["applyUpdates"] == {
        "by": "runtime",
        "why": "it is a test",
        "byRuntime": 0,
        "writes": None,
    }


async def test_a_failed_part_is_shown_with_its_reason(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.run("shared", 0.5)
        node.delivery.problem = "RuntimeError: can't start new thread"
        async with asking_view(view_of(node), tmp_path) as client:
            state = await ask(client, "/v1/state")

    assert "at present by the runtime: RuntimeError: can't start" in render_status(
        state
    )
    (one,) = state["containers"]
    assert one["delivery"]["by"] == "runtime"
