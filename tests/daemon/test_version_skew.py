"""A daemon works with files and reports of the agent before, and of the next one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from nri_resmgr.control.client import Client
from nri_resmgr.spool import ADJUSTMENTS, CONFIGURATION
from tests.daemon.spooled import put, spool
from tests.daemon.test_control import at_work, socket_in

pytestmark = pytest.mark.process

ADJUSTMENT: Final = """\
- apiVersion: criresmgr.intel.com/v1alpha1
  kind: Adjustment
  metadata: {name: mine, namespace: kube-system, uid: uid-mine}
  spec: {scope: [{nodes: [node-a]}]}
"""

# Lines of the header but for the first and the last one, of files with a document and
# with adjustments; and a report.
Agent = tuple[tuple[str, ...], tuple[str, ...], dict[str, object]]

OLDER: Final[Agent] = (
    ("kind: StaticPolicy", "uid: 7"),
    ("kind: AdjustmentList", "node: node-a"),
    {"version": "0.0.9", "node": "node-a"},
)
LATER: Final[Agent] = (
    ("source: Later", "kind: StaticPolicy", "uid: 7", "more: a b c"),
    ("kind: AdjustmentList", "more: a b c", "node: node-a"),
    {
        "version": "9.9",
        "node": "node-a",
        "contactSeconds": 1.5,
        "problem": "",
        "more": {"words": [1, None]},
    },
)


def document(cpu: int) -> str:
    """Return a document that may take CPUs from containers."""
    spec = {"reservedResources": {"cpu": f"cpuset:{cpu}"}, "allowLoss": True}
    api = "config.nri/v1alpha1"
    return json.dumps({"apiVersion": api, "kind": "StaticPolicy", "spec": spec})


def whole(lines: tuple[str, ...], text: str, version: int = 1) -> bytes:
    """Return a spool file, written by hand."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    head = (f"nri-resmgr spool {version}", *lines, f"sha256: {digest}")
    return "".join([*(f"# {line}\n" for line in head), text]).encode()


def reserved(folder: Path) -> str:
    found: str = Client(str(socket_in(folder))).get("/v1/state")["cpus"]["reserved"]
    return found


def judged(folder: Path) -> Any:
    return Client(str(socket_in(folder))).get("/v1/cluster")


def report(folder: Path, body: dict[str, object]) -> httpx2.Response:
    """Report as an agent does."""
    transport = httpx2.HTTPTransport(uds=str(socket_in(folder)))
    with httpx2.Client(transport=transport, base_url="http://daemon") as client:
        return client.post("/v1/agent", json=body)


@pytest.mark.parametrize("agent", [OLDER, LATER], ids=["older", "later"])
async def test_files_and_reports_of_another_agent_count(
    agent: Agent, tmp_path: Path
) -> None:
    of_document, of_adjustments, says = agent
    folder = spool(tmp_path)
    # From before the daemon was changed.
    put(folder / CONFIGURATION, whole(of_document, document(3)))
    put(folder / ADJUSTMENTS, whole(of_adjustments, ADJUSTMENT))
    put(folder / "later.yaml", b"of no file that is known\n")
    async with at_work(tmp_path, "--spool", str(folder)):
        assert await asyncio.to_thread(reserved, tmp_path) == "3"
        put(folder / CONFIGURATION, whole(of_document, document(2)))
        async with asyncio.timeout(60):
            while await asyncio.to_thread(reserved, tmp_path) != "2":  # noqa: ASYNC110 - of a process
                await asyncio.sleep(0.05)
        answer = await asyncio.to_thread(report, tmp_path, says)
        found = await asyncio.to_thread(judged, tmp_path)

    assert answer.status_code == httpx2.codes.OK
    assert answer.json()["agent"]["version"] == says["version"]
    configuration, adjustments = found["configuration"], found["adjustments"]
    assert (configuration["verdict"], configuration["object"]["uid"]) == (
        *("accepted", "7"),
    )
    (one,) = adjustments["objects"]
    assert (one["object"]["name"], one["verdict"]) == ("mine", "accepted")
    assert (found["spool"]["problem"], configuration["problem"]) == ("", "")


@pytest.mark.parametrize("version", [0, 2])
async def test_another_format_leaves_the_last_document_in_force_over_a_restart(
    version: int, tmp_path: Path
) -> None:
    folder, lines = spool(tmp_path), OLDER[0]
    flags = ("--spool", str(folder), "--state-dir", str(tmp_path / "state"))
    put(folder / CONFIGURATION, whole(lines, document(3)))

    def problem() -> str:
        found: str = judged(tmp_path)["configuration"]["problem"]
        return found

    async with at_work(tmp_path, *flags):
        put(folder / CONFIGURATION, whole(lines, document(2), version))
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(problem):  # noqa: ASYNC110 - of a process
                await asyncio.sleep(0.05)
        why = await asyncio.to_thread(problem)
        before = await asyncio.to_thread(reserved, tmp_path)
    # Of the process before.
    shutil.rmtree(tmp_path / "host")
    (tmp_path / "log").unlink()
    async with at_work(tmp_path, *flags) as again:
        after = await asyncio.to_thread(reserved, tmp_path)
        logged = [one for one in again.lines() if "spool format" in str(one)]

    assert why == (
        f"has version {version} of the spool format, expected 1: agent and daemon are "
        "too far apart"
    )
    assert (before, after) == ("3", "3")
    assert logged
