"""What a node had in objects of the cluster goes with its Node, and comes back."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.kubernetes.nodes import Node, daemon_of, policy, until
from tests.kubernetes.test_adjusted_node import adjustment

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

OTHER: Final[dict[str, Any]] = {
    "other": {
        "status": "Success",
        "generation": 1,
        "timestamp": "2026-01-02T03:04:05Z",
    }
}


async def test_entries_of_a_deleted_node_are_removed_and_come_back_with_it(
    node: Node,
) -> None:
    def entries(*names: str) -> Any:
        return node.kubectl.get(*names).get("status", {}).get("nodes", {})

    def of_document() -> Any:
        return entries("staticpolicy", "default")

    def of_adjustment() -> Any:
        return entries("adjustment", "mine")

    def owner() -> str:
        found = node.kubectl.get("nrm", node.name)["metadata"]["ownerReferences"]
        return str(found[0]["uid"])

    def patch(what: str, nodes: object, *flags: str) -> None:
        body = json.dumps({"status": {"nodes": nodes}})
        node.kubectl("patch", *what.split(), "--type=merge", "-p", body, *flags)

    node.kubectl.apply(policy("default", "cpuset:3"), adjustment("mine", "web"))
    patch("adjustment mine", {"other": {"errors": {}}})
    before = node.kubectl.get("node", node.name)["metadata"]["uid"]
    async with daemon_of(node), node.agent():
        await until(lambda: node.condition()[1] == "Accepted")
        patch("staticpolicy default", OTHER, "--subresource=status")
        await until(lambda: of_document().keys() == {"other", node.name})
        await until(lambda: of_adjustment().keys() == {"other", node.name})
        assert owner() == before

        node.kubectl("delete", "node", node.name)
        # By its owner, as the garbage collector does, which does not run here.
        node.kubectl("delete", "nrm", node.name)
        await until(lambda: of_document() == OTHER)
        await until(lambda: of_adjustment() == {"other": {"errors": {}}})
        # The node works on, and reports nothing.
        node.kubectl.apply(policy("default", "cpuset:2"))
        await until(lambda: node.reserved() == "2")
        assert node.status() == {}
        assert of_document() == OTHER

        named = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}}
        node.kubectl.apply(named)
        await until(lambda: node.condition()[1] == "Accepted")
        await until(lambda: of_document().keys() == {"other", node.name})
        await until(lambda: of_adjustment().keys() == {"other", node.name})
        after = node.kubectl.get("node", node.name)["metadata"]["uid"]
        assert (owner(), before != after) == (after, True)

        # As the documentation has it, for a machine that was lost with its agent.
        patch("staticpolicy default", {"other": None}, "--subresource=status")
        patch("adjustment mine", {"other": None})
        assert of_document().keys() == of_adjustment().keys() == {node.name}
