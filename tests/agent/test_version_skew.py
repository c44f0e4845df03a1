"""An agent works with a daemon of the version before, and of the next one.

The other way is in `tests/daemon/test_version_skew.py`, and definitions of other
versions in `tests/kubernetes/test_definition_skew.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from nri_resmgr.agent import daemon_state
from nri_resmgr.agent.api import Access
from nri_resmgr.agent.configuration import ConfigScope, custom_resources
from nri_resmgr.agent.options import AgentOptions
from nri_resmgr.values.documents import from_plain
from tests.agent.adjusted import KIND, PATH, adjustment
from tests.agent.agent_task import agent_task
from tests.agent.fake_api_server import FakeApiServer, Json
from tests.agent.other_version import Edit, later, older, other_version
from tests.agent.test_agent import KINDS, NAMESPACE, NODE, NODES, STATIC, policy
from tests.daemon.test_control import at_work, socket_in
from tests.waiting import until

ANSWERS: Final[list[Any]] = [
    one
    for one in vars(daemon_state).values()
    if isinstance(one, type) and issubclass(one, msgspec.Struct)
]


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_fields_may_be_missing_and_others_there(kind: Any) -> None:
    assert from_plain(kind, {}) == kind()
    assert from_plain(kind, {"later": {"more": [1, "text"]}}) == kind()


@asynccontextmanager
async def node_with(
    edit: Edit, server: FakeApiServer, access: Access, folder: Path
) -> AsyncIterator[None]:
    """Run a daemon whose answers are edited, and today's agent with it."""
    server.kinds = {*KINDS, KIND}
    server.put(NODES, {"metadata": {"name": NODE}})
    server.put(STATIC, policy("default", "cpuset:3"))
    server.put(PATH, adjustment("mine", [NODE]))
    (folder / "spool").mkdir(0o755)
    options = AgentOptions(
        scope=ConfigScope(NODE, NAMESPACE, custom_resources(["StaticPolicy"])),
        spool=folder / "spool",
        control_socket=str(folder / "edited.sock"),
    )
    async with (
        at_work(folder, "--spool", str(folder / "spool")),
        other_version(socket_in(folder), folder / "edited.sock", edit),
        agent_task(access, options),
    ):
        yield


def of_node(server: FakeApiServer) -> Json:
    """Return the status of the node's object, as far as there is one."""
    key = ("config.nri/noderesourcemanagers", "", NODE)
    found: Json = server.objects.get(key, {}).get("status", {})
    return found


def condition(server: FakeApiServer, kind: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition."""
    for one in of_node(server).get("conditions", ()):
        if one["type"] == kind:
            return one["status"], one["reason"], one["message"]
    return "", "", ""


def entries(server: FakeApiServer, kind: str, name: str) -> Json:
    """Return the entries of nodes in an object."""
    body = server.objects.get((kind, NAMESPACE, name), {})
    found: Json = body.get("status", {}).get("nodes", {})
    return found


@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("edit", [older, later])
async def test_a_document_of_the_cluster_is_in_force_and_reported(
    edit: Edit, server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    def is_reported(status: str) -> bool:
        found = entries(server, "config.nri/staticpolicies", "default")
        return bool(found.get(NODE, {}).get("status") == status)

    async with node_with(edit, server, access, tmp_path):
        await until(lambda: condition(server, "Ready")[:2] == ("True", "Working"))
        await until(lambda: is_reported("Success"))
        await until(lambda: condition(server, "AdjustmentsApplied")[0] == "True")
        await until(lambda: entries(server, KIND, "mine") == {NODE: {"errors": {}}})
        await until(lambda: of_node(server)["policy"] == "StaticPolicy")

        server.put(STATIC, policy("default", "4711"))
        await until(lambda: condition(server, "Ready")[:2] == ("False", "Rejected"))
        await until(lambda: is_reported("Failure"))


@pytest.mark.process
@pytest.mark.timeout(600)
async def test_a_verdict_that_is_not_known_is_no_verdict(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    def deferred(path: str, answer: Json) -> Json:
        if path == "/v1/agent" and answer["configuration"] and answer["adjustments"]:
            judged = answer["adjustments"]["objects"]
            for one in (answer["configuration"], *judged):
                one["verdict"] = "deferred"
        return answer

    async with node_with(deferred, server, access, tmp_path):
        await until(lambda: "deferred" in condition(server, "Ready")[2])
        await asyncio.sleep(1.0)

        assert condition(server, "Ready")[:2] == ("Unknown", "Pending")
        assert condition(server, "RuntimeConnected")[0] == "True"
        # Neither object claims anything of the node.
        assert entries(server, "config.nri/staticpolicies", "default") == {}
        assert entries(server, KIND, "mine") == {}
        assert condition(server, "AdjustmentsApplied")[0] == ""
