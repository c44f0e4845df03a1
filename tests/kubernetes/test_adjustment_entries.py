"""An adjustment has entries of few nodes, and the object of a node its own verdict."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from nri_resmgr.agent.adjustment_status import AdjustmentReporter
from nri_resmgr.agent.adjustments import ADJUSTMENTS
from nri_resmgr.agent.api import ApiClient, Target, find_access
from nri_resmgr.agent.daemon_state import JudgedAdjustment, JudgedObject
from nri_resmgr.agent.object_status import MOST_NODES
from tests.kubernetes.nodes import Node, until
from tests.kubernetes.test_adjusted_node import adjustable, adjustment

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

GOLD: Final = {"rdt": "gold"}
TOO_MUCH: Final = {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}


def others(count: int) -> dict[str, Any]:
    """Return a status with entries of so many other nodes."""
    names = [f"other-{number}" for number in range(count)]
    return {"status": {"nodes": {name: {"errors": dict[str, str]()} for name in names}}}


async def test_a_full_adjustment_gets_no_entry_and_the_node_shows_the_verdict(
    node: Node,
) -> None:
    full = {**adjustment("full", "web", resources=TOO_MUCH), **others(MOST_NODES)}
    room = {**adjustment("room", "next", classes=GOLD), **others(MOST_NODES - 1)}
    async with adjustable(node) as adjusted:
        node.kubectl.apply(full, room)
        await until(lambda: node.condition("AdjustmentsApplied")[1] == "Rejected")
        # It comes after the other one, by its name.
        await until(lambda: node.name in adjusted.status("room")["nodes"])

        assert adjusted.status("full") == full["status"]
        assert (
            "full: $.spec.resources.requests.cpu: exceeds"
            in (node.condition("AdjustmentsApplied")[2])
        )

        node.kubectl("delete", "adjustment", "full")
        await until(lambda: node.condition("AdjustmentsApplied")[1] == "Accepted")
        assert node.condition("AdjustmentsApplied")[2] == "in force: room"
        node.kubectl("delete", "adjustment", "room")
        await until(lambda: node.condition("AdjustmentsApplied")[0] == "")


async def test_nodes_that_report_at_once_leave_no_more_entries_than_there_may_be(
    node: Node,
) -> None:
    node.kubectl.apply({**adjustment("wide", classes=GOLD), **others(MOST_NODES - 3)})
    access = find_access(node.account.kubeconfig(node.folder / "agent.yaml"))
    target = Target(ADJUSTMENTS, node.account.namespace)

    async def report(api: ApiClient, name: str) -> None:
        reporter = AdjustmentReporter(api, name, lambda: 0.01)
        while True:
            found = {one.name: one for one in await api.list(target)}
            named = JudgedObject("wide", found["wide"].uid)
            judged = JudgedAdjustment(named, "accepted")
            if not (pause := await reporter.write(found, [judged])):
                return
            await asyncio.sleep(pause)

    async with ApiClient.open(access) as api, asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(report(api, f"node-{number}"))

    found = node.kubectl.get("adjustment", "wide")["status"]["nodes"]
    assert len(found) == MOST_NODES
