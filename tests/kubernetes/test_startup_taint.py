"""The startup taint of a Node, by a real API server."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kubernetes.nodes import Node, daemon_of, policy, until
from tests.kubernetes.roles import RULES, STARTUP_TAINT

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

KEY: Final = "nri-resmgr.io/not-ready"
OTHER: Final = "example.com/gpu"
# By which the API server makes each Node.
NOT_READY: Final = "node.kubernetes.io/not-ready"


def taints(node: Node) -> list[str]:
    """The keys of the taints of the Node."""
    found = node.kubectl.get("node", node.name).get("spec", {}).get("taints", [])
    return sorted(one["key"] for one in found)


async def test_the_agent_removes_the_startup_taint_once_the_daemon_serves(
    node: Node,
) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    for key in (KEY, OTHER):
        node.kubectl("taint", "node", node.name, f"{key}=yes:NoSchedule")
    async with node.agent("--startup-taint", KEY):
        # Nothing is to be removed before there is a daemon.
        await until(lambda: node.condition("Ready")[0] == "Unknown")
        assert taints(node) == [OTHER, NOT_READY, KEY]
        assert ("", "nodes", "patch") not in node.missing_rights()

        async with daemon_of(node):
            # An option, not among the rights of every agent.
            await until(lambda: ("", "nodes", "patch") in node.missing_rights())
            assert taints(node) == [OTHER, NOT_READY, KEY]
            node.account.allow(*RULES, STARTUP_TAINT, cluster=True)
            await until(lambda: taints(node) == [OTHER, NOT_READY])


async def test_without_the_flag_taints_stay(node: Node) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    node.kubectl("taint", "node", node.name, f"{KEY}:NoSchedule")
    node.account.allow(*RULES, STARTUP_TAINT, cluster=True)
    async with daemon_of(node), node.agent():
        await until(lambda: node.condition("Ready")[0] == "True")
        assert taints(node) == [NOT_READY, KEY]
