"""Objects of definitions that nri-plugins has installed count as they are."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kubernetes.conftest import install_kinds
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import KubectlFailed
from tests.kubernetes.nodes import Node, daemon_of, policy, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

KIND: Final = "BalloonsPolicy"
PLURAL: Final = "balloonspolicies"

# As nri-plugins has it: a required option, no defaults, a status of entries alone.
SCHEMA: Final = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["reservedResources"],
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "reservedResources": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                }
            },
        },
        "status": {
            "type": "object",
            "required": ["nodes"],
            "properties": {
                "nodes": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "required": ["generation", "status", "timestamp"],
                        "properties": {
                            "errors": {"type": "string", "nullable": True},
                            "generation": {"type": "integer", "format": "int64"},
                            "status": {
                                "type": "string",
                                "enum": ["Success", "Failure"],
                            },
                            "timestamp": {"type": "string", "format": "date-time"},
                        },
                    },
                }
            },
        },
    },
}
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.config.nri"},
    "spec": {
        "group": "config.nri",
        "names": {
            "kind": KIND,
            "listKind": f"{KIND}List",
            "plural": PLURAL,
            "singular": KIND.lower(),
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}


async def test_objects_of_definitions_of_nri_plugins_count_and_have_entries(
    node: Node, control_plane: ControlPlane
) -> None:
    name = f"node.{node.name}"

    def entry() -> dict[str, object]:
        try:
            found = node.kubectl.get(PLURAL, name).get("status", {})
        except KubectlFailed:  # between the two definitions
            return {}
        assert set(found) <= {"nodes"}  # the server drops what theirs does not have
        return dict(found.get("nodes", {}).get(node.name, {}))

    node.kubectl("delete", "crd", f"{PLURAL}.config.nri")
    try:
        node.kubectl.apply(DEFINITION)
        node.kubectl(
            *("wait", "--for=condition=Established", "--timeout=60s"),
            *("crd", f"{PLURAL}.config.nri"),
        )
        node.kubectl.apply(policy(name, "cpuset:3", KIND))
        async with daemon_of(node), node.agent("--kinds", KIND):
            await until(lambda: node.reserved() == "3")
            await until(lambda: entry().get("status") == "Success")
            node.kubectl.apply(policy(name, "4711", KIND))
            await until(lambda: entry().get("status") == "Failure")

            assert "reservedResources" in str(entry()["errors"])
            assert node.reserved() == "3"
    finally:
        node.kubectl("delete", "crd", f"{PLURAL}.config.nri")
        install_kinds(control_plane)
