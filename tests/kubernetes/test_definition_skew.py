"""Definitions of the version before, and of the next one, with today's node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
import yaml

from tests.kubernetes.conftest import install_kinds
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.nodes import CRDS, Node, daemon_of, policy, status_of, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

DOCUMENTS: Final = "staticpolicies"
REPORTS: Final = "noderesourcemanagers"


@contextmanager
def changed(
    node: Node, control_plane: ControlPlane, edit: Callable[[str, Any], None]
) -> Iterator[None]:
    """Change the schemas of two kinds while the block runs."""

    def apply(plural: str) -> None:
        text = (CRDS / f"config.nri_{plural}.yaml").read_text(encoding="utf-8")
        found = yaml.safe_load(text)
        (version,) = found["spec"]["versions"]
        edit(plural, version["schema"]["openAPIV3Schema"]["properties"])
        node.kubectl.apply(found, server_side=True)

    try:
        for plural in (DOCUMENTS, REPORTS):
            apply(plural)
        yield
    finally:
        install_kinds(control_plane)


def older(plural: str, properties: Any) -> None:
    """Leave out what an older version may have lacked."""
    status = properties["status"]["properties"]
    if plural == REPORTS:
        for name in ("mode", "cpus", "runtime"):
            del status[name]
        return
    del properties["spec"]["properties"]["mode"]
    for name in ("conditions", "observedGeneration"):
        del status[name]


def later(plural: str, properties: Any) -> None:
    """Add what a later version may have."""
    where = "status" if plural == REPORTS else "spec"
    properties[where]["properties"]["later"] = {"type": "string"}


async def test_older_definitions_keep_documents_in_force_and_reported(
    node: Node, control_plane: ControlPlane
) -> None:
    name = f"node.{node.name}"

    def entry() -> Any:
        status = node.kubectl.get("staticpolicy", name).get("status", {})
        return status.get("nodes", {}).get(node.name, {}).get("status")

    def writes() -> int:
        return sum(one.verb == "patch" for one in node.account.requests())

    with changed(node, control_plane, older):
        node.kubectl.apply(policy(name, "cpuset:3"))
        async with daemon_of(node), node.agent():
            await until(lambda: node.condition("Ready")[:2] == ("True", "Working"))
            await until(lambda: entry() == "Success")
            assert "cpus" not in node.status()
            # What reports lack is logged, and shown on the node.
            await until(lambda: "agent.fields-left-out" in node.log())
            await until(lambda: "update the CRDs" in status_of(node))
            await asyncio.sleep(3.0)
            before = writes()
            await asyncio.sleep(4.0)
            assert writes() == before

            node.kubectl.apply(policy(name, "4711"))
            await until(lambda: node.condition("Ready")[1] == "Rejected")
            await until(lambda: entry() == "Failure")
            assert node.reserved() == "3"


async def test_an_option_of_a_later_definition_is_rejected_with_its_path(
    node: Node, control_plane: ControlPlane
) -> None:
    def has_option() -> bool:
        text = yaml.safe_dump(policy("default", "cpuset:2", later="yes"))
        # What the client has read of the schemas may be older.
        node.kubectl("apply", "--validate=false", "-f", "-", stdin=text)
        found = node.kubectl.get("staticpolicy", "default")
        return bool(found["spec"].get("later") == "yes")

    with changed(node, control_plane, later):
        node.kubectl.apply(policy("default", "cpuset:3"))
        async with daemon_of(node), node.agent():
            await until(lambda: node.condition()[1] == "Accepted")
            assert node.reserved() == "3"
            await until(has_option)
            await until(lambda: node.condition()[1] == "Rejected")

            assert "$.spec.later: unknown key" in node.condition()[2]
            assert node.reserved() in ("3", "2")  # without it, before it was known
            node.kubectl("delete", "staticpolicy", "default")
            node.kubectl.apply(policy("default", "cpuset:1"))
            await until(lambda: node.reserved() == "1")
            await until(lambda: node.condition()[1] == "Accepted")
