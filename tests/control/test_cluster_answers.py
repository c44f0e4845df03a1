"""The cluster's documents on the control socket, and what the agent may do there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.client import Client, QueryRefused
from nri_resmgr.control.http import HttpRequest, RequestRefused
from nri_resmgr.control.http_server import serve
from nri_resmgr.control.listener import open_control_socket
from nri_resmgr.control.routes import routes_of, site_of
from nri_resmgr.daemon.cluster.documents import ClusterDocuments
from tests.control.daemon_parts import Parts, ask, make_parts, skip_unless_root
from tests.control.json_schema import mistakes
from tests.daemon.documents import BAD, document
from tests.daemon.spooled import hand_over_configuration, spool

AGENT, OTHER = 65532, 65533

# With the user of its first argument.
CALL = """\
import os, socket, sys
os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
with socket.socket(socket.AF_UNIX) as client:
    client.connect(sys.argv[2])
    body = sys.argv[4].encode()
    head = f"{sys.argv[3]} HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(body)}"
    head += "\\r\\n\\r\\n"
    client.sendall(head.encode() + body)
    print(client.makefile("rb").readline().split()[1].decode())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can pass."""
    with tempfile.TemporaryDirectory(prefix="spool-", dir="/tmp") as path:
        Path(path).chmod(0o711)
        yield Path(path)


def parts_with_cluster(folder: Path) -> tuple[Parts, ClusterDocuments]:
    """Make a daemon's parts with a spool folder."""
    parts = make_parts()
    cluster = ClusterDocuments(str(spool(folder)))
    parts.daemon.cluster = cluster
    return parts, cluster


@asynccontextmanager
async def asking(parts: Parts, folder: Path) -> AsyncIterator[Client]:
    """Serve the control socket as a daemon with a spool folder does."""
    path = str(folder / "run" / "control.sock")
    listener, remove = open_control_socket(path, for_agent=True)
    task = asyncio.create_task(serve(site_of(parts.daemon), listener))
    try:
        yield Client(path)
    finally:
        task.cancel()
        await asyncio.wait({task})
        remove()


@pytest.mark.parametrize("text", [document(1, "TopologyAwarePolicy"), BAD, "a: ["])
async def test_the_answer_has_the_verdict_and_fits_the_schema(
    folder: Path, text: str
) -> None:
    parts, cluster = parts_with_cluster(folder)
    hand_over_configuration(folder / "spool", text, generation=3)
    try:
        await cluster.reload(parts.policy.configuration, force=False)
    except Exception as error:  # noqa: BLE001 - compared with the answer
        why = str(error)
    else:
        why = ""
    async with asking(parts, folder) as client:
        found = await ask(client, "/v1/cluster")
        state = await ask(client, "/v1/state")

    assert [*mistakes(found, "Cluster"), *mistakes(state, "State")] == []
    configuration = found["configuration"]
    assert configuration["verdict"] == ("rejected" if why else "accepted")
    assert configuration["why"] == why
    assert configuration["object"] == {
        "kind": "TopologyAwarePolicy",
        "name": "node.worker-1",
        "namespace": "kube-system",
        "uid": "uid-node.worker-1",
        "generation": 3,
    }
    assert state["cluster"]["configuration"] == configuration
    shown = render_status(state)
    assert "cluster" in shown
    assert f"node.worker-1 generation 3: {configuration['verdict']}" in shown
    assert "no agent has reported" in shown


def say(parts: Parts, **report: Any) -> dict[str, Any]:
    """Report as an agent does."""
    handler = routes_of(parts.daemon)["POST", "/v1/agent"]
    body = json.dumps(report).encode()
    answer = handler(HttpRequest("POST", "/v1/agent", {}, body))
    found: dict[str, Any] = json.loads(answer.body)  # type: ignore[union-attr,arg-type] # it is no awaitable, nor in pieces
    return found


def test_the_agent_reports_and_is_answered(folder: Path) -> None:
    parts, _ = parts_with_cluster(folder)

    found = say(parts, version="1.2", node="worker-1", contactSeconds=90)

    assert list(mistakes(found, "Cluster")) == []
    assert found["agent"]["version"] == "1.2"
    assert found["agent"]["contactSeconds"] >= 90
    assert (found["agentAbsent"], found["agentSilentSeconds"] < 600) == (False, True)


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"version": "1"},
        {"version": "1", "node": 1},
        {"version": "1", "node": "n" * 254},
        {"version": "1", "node": "n", "contactSeconds": -1},
        {"version": "1", "node": "n", "problem": "x" * 2000},
    ],
)
def test_an_invalid_report_is_refused(folder: Path, report: dict[str, Any]) -> None:
    parts, cluster = parts_with_cluster(folder)

    with pytest.raises(RequestRefused, match="not a report of an agent"):
        say(parts, **report)

    assert cluster.status.agent is None


def test_what_only_a_later_agent_reports_is_ignored(folder: Path) -> None:
    parts, cluster = parts_with_cluster(folder)

    say(parts, version="2", node="n", more=1)

    assert cluster.status.agent is not None
    assert cluster.status.agent.version == "2"


async def test_without_a_spool_folder_queries_about_the_cluster_are_refused(
    tmp_path: Path,
) -> None:
    parts = make_parts()
    async with asking(parts, tmp_path) as client:
        with pytest.raises(QueryRefused, match="no --spool folder"):
            await ask(client, "/v1/cluster")
        state = await ask(client, "/v1/state")

    assert state["cluster"] is None
    with pytest.raises(RequestRefused, match="no --spool folder"):
        say(parts, version="1", node="n")


@pytest.mark.process
async def test_the_agent_may_only_read_and_report(folder: Path) -> None:
    skip_unless_root()
    parts, cluster = parts_with_cluster(folder)
    os.chown(folder / "spool", AGENT, AGENT)
    cluster.begin()
    report = '{"version": "1", "node": "n"}'
    async with asking(parts, folder):
        path = str(folder / "run" / "control.sock")

        async def status(user: int, line: str, body: str = "") -> str:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", CALL, str(user), path, line, body),
                stdout=asyncio.subprocess.PIPE,
            )
            out, _ = await process.communicate()
            return out.decode().strip()

        lines = (
            "GET /v1/cluster",
            "GET /v1/state",
            "POST /v1/agent",
            "POST /v1/reload",
            "PUT /v1/log",
        )
        found = {
            user: [await status(user, line, report) for line in lines]
            for user in (AGENT, OTHER, 0)
        }

    assert found[AGENT] == ["200", "200", "200", "403", "403"]
    assert found[OTHER] == ["403"] * 5
    assert found[0] == ["200", "200", "200", "200", "400"]
