"""Extended resources in the status of a Node, by a real API server."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.kubernetes.nodes import Node, daemon_of, policy, until
from tests.kubernetes.roles import NODE_STATUS, RULES

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

CPUS: Final = "resource-policy.nri.io/exclusive-cpus"
OTHER: Final = "example.com/other"
PUBLISH: Final = {"exclusiveCPUs": True, "by": "node-status"}


def resources(node: Node) -> dict[str, str]:
    """The extended resources of the Node."""
    found = node.kubectl.get("node", node.name).get("status", {}).get("capacity", {})
    return {name: count for name, count in found.items() if "/" in name}


def set_status(node: Node, capacity: dict[str, Any]) -> None:
    """Write the status of the Node, as its kubelet does."""
    path = f"/api/v1/nodes/{node.name}/status"
    body = {"status": {"capacity": capacity}}
    plane = node.account.control_plane
    answer = plane.ask("PATCH", path, body, kind="application/merge-patch+json")
    assert answer.status == 200, json.dumps(answer.body)


async def test_the_agent_keeps_its_names_in_the_status_of_its_node(node: Node) -> None:
    node.kubectl.apply(policy("default", "cpuset:3", publish=PUBLISH))
    async with daemon_of(node):
        async with node.agent():
            # An option, not among the rights of every agent.
            await until(lambda: ("", "nodes/status", "patch") in node.missing_rights())
            assert resources(node) == {}
            node.account.allow(*RULES, NODE_STATUS, cluster=True)
            await until(lambda: resources(node) == {CPUS: "7"})

        # A kubelet that does not know it; and a resource of another program.
        set_status(node, {CPUS: "0", OTHER: "5"})
        async with node.agent():
            await until(lambda: resources(node) == {CPUS: "7", OTHER: "5"})
            # Another number, and none.
            document = policy("default", "cpuset:2-3", publish=PUBLISH)
            node.kubectl.apply(document)
            await until(lambda: resources(node) == {CPUS: "6", OTHER: "5"})
        node.kubectl.apply(policy("default", "cpuset:2-3"))
        async with node.agent():
            await until(lambda: resources(node) == {OTHER: "5"})
