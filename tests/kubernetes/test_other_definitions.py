"""Objects of definitions that nri-plugins has installed count as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import pytest

from tests.kubernetes.conftest import install_kinds
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import KubectlFailed
from tests.kubernetes.nodes import Node, daemon_of, policy, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

# As nri-plugins has it: entries alone.
STATUS: Final = {
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
                    "status": {"type": "string", "enum": ["Success", "Failure"]},
                    "timestamp": {"type": "string", "format": "date-time"},
                },
            },
        }
    },
}
CPUS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
OFF: Final = {"type": "boolean"}
ON: Final = {"type": "boolean", "default": True}
NAMES: Final = {"type": "array", "items": {"type": "string"}}


def choice(*values: str) -> Mapping[str, object]:
    """Return the schema of an option whose default is the last of its values."""
    return {"type": "string", "enum": list(values), "default": values[-1]}


@attrs.frozen
class Definition:
    """A definition of nri-plugins, written anew.

    Attributes:
        kind: Of its objects.
        plural: Their name in paths.
        options: Schemas of the options of the specification.
        is_open: Whether objects keep options that the definition does not have.
        given: Options of the test's objects.
        filled: The same as the API server stores them, with the definition's defaults.
    """

    kind: str
    plural: str
    options: Mapping[str, object]
    is_open: bool = False
    given: Mapping[str, object] = {}
    filled: Mapping[str, object] = {}

    @property
    def name(self) -> str:
        """Its own name."""
        return f"{self.plural}.config.nri"

    def document(self, name: str, cpu: str) -> Any:
        """Return an object that its reserved CPU distinguishes from others."""
        found = policy(name, cpu, self.kind, **self.given)
        if not self.is_open:
            del found["spec"]["allowLoss"]  # ours alone
        return found

    def body(self) -> Any:
        """Return it as an object of the API."""
        spec: dict[str, object] = {
            "type": "object",
            "required": ["reservedResources"],
            "properties": {"reservedResources": CPUS, **self.options},
        }
        if self.is_open:
            spec["x-kubernetes-preserve-unknown-fields"] = True
        schema = {
            "type": "object",
            "required": ["spec"],
            "properties": {"spec": spec, "status": STATUS},
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": "config.nri",
                "names": {
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                },
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1alpha1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                        "subresources": {"status": {}},
                    }
                ],
            },
        }


BALLOONS: Final = Definition("BalloonsPolicy", "balloonspolicies", {}, is_open=True)
# The API server adds defaults of these definitions to each object.
TOPOLOGY_AWARE: Final = Definition(
    "TopologyAwarePolicy",
    "topologyawarepolicies",
    {
        "availableResources": CPUS,
        "pinCPU": ON,
        "pinMemory": ON,
        "preferIsolatedCPUs": ON,
        "preferSharedCPUs": OFF,
        "colocatePods": OFF,
        "colocateNamespaces": OFF,
        "reservedPoolNamespaces": NAMES,
        "defaultCPUPriority": choice("high", "normal", "low", "none"),
        "unlimitedBurstable": choice("system", "die", "numa", "l3cache", "package"),
        "agent": {
            "type": "object",
            "properties": {"nodeResourceTopology": ON, "podResourceAPI": OFF},
        },
        "log": {"type": "object", "properties": {"debug": NAMES, "source": OFF}},
        "instrumentation": {
            "type": "object",
            "properties": {"reportPeriod": {"type": "string", "default": "30s"}},
        },
    },
    given={"agent": {}, "instrumentation": {}, "colocatePods": True},
    filled={
        "agent": {"nodeResourceTopology": True},
        "instrumentation": {"reportPeriod": "30s"},
        "colocatePods": True,
        "pinCPU": True,
        "pinMemory": True,
        "preferIsolatedCPUs": True,
        "defaultCPUPriority": "none",
        "unlimitedBurstable": "package",
    },
)


# `TemplatePolicy`, the sample for authors, is none of the kinds that configure a node.
@pytest.mark.parametrize(
    "theirs",
    [pytest.param(one, id=one.kind) for one in (BALLOONS, TOPOLOGY_AWARE)],
)
async def test_objects_of_definitions_of_nri_plugins_count_and_have_entries(
    node: Node, control_plane: ControlPlane, theirs: Definition
) -> None:
    name = f"node.{node.name}"

    def found() -> dict[str, Any]:
        try:
            return dict(node.kubectl.get(theirs.plural, name))
        except KubectlFailed:  # between the two definitions
            return {}

    def entry() -> dict[str, object]:
        status = found().get("status", {})
        assert set(status) <= {"nodes"}  # the server drops what theirs does not have
        return dict(status.get("nodes", {}).get(node.name, {}))

    node.kubectl("delete", "crd", theirs.name)
    try:
        node.kubectl.apply(theirs.body())
        node.kubectl(
            *("wait", "--for=condition=Established", "--timeout=60s"),
            *("crd", theirs.name),
        )
        node.kubectl.apply(theirs.document(name, "cpuset:3"))
        async with daemon_of(node), node.agent("--kinds", theirs.kind):
            await until(lambda: node.reserved() == "3")
            await until(lambda: entry().get("status") == "Success")
            spec = found()["spec"]
            node.kubectl.apply(theirs.document(name, "4711"))
            await until(lambda: entry().get("status") == "Failure")

            assert theirs.filled.items() <= spec.items()
            assert "reservedResources" in str(entry()["errors"])
            assert node.reserved() == "3"
    finally:
        node.kubectl("delete", "crd", theirs.name)
        install_kinds(control_plane)
