"""A part of the agent that fails is started again, or the agent ends in order."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.agent.api import Access
from nri_resmgr.app.background.supervisor import LONGEST, STEADY
from nri_resmgr.app.metrics.table import PART_FAILING, PART_FAILURES
from nri_resmgr.spool import CONFIGURATION
from nri_resmgr.values.exit_status import FAILED
from tests.agent.agent_process import (
    ENDPOINTS,
    NODE,
    agent_process,
    command,
    kubeconfig_of,
)
from tests.agent.fake_api_server import FakeApiServer
from tests.faults.filtered_process import FilteredProcess, filtered_process
from tests.faults.later_clock import LaterClock
from tests.faults.system_calls import ALWAYS, Fault, Point, why_not_here
from tests.waiting import until

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not_here()), reason=why_not_here()),
]

STATIC: Final = "/apis/config.nri/v1alpha1/namespaces/kube-system/staticpolicies"
SPOOL: Final = Point("openat", "spool")
PART: Final = "hand-over"
WELL: Final = (200, "ok\n")


def policy(reserved: int) -> Mapping[str, Any]:
    """Make another policy for each number."""
    spec = {"reservedResources": {"cpu": str(reserved)}}
    return {"metadata": {"name": "default"}, "spec": spec}


@pytest.fixture
def cluster(server: FakeApiServer) -> FakeApiServer:
    """A server with a node and its policy."""
    server.kinds = {"/nodes", "config.nri/staticpolicies"}
    server.put("/api/v1/nodes", {"metadata": {"name": NODE}})
    server.put(STATIC, dict(policy(1)))
    return server


@asynccontextmanager
async def agent_with_faults(
    folder: Path, access: Access, later: LaterClock
) -> AsyncIterator[FilteredProcess]:
    """Run an agent that has handed over the first policy."""

    def place_of(path: str) -> str:
        return "spool" if path.startswith(f"{folder}/spool/") else "other"

    async with filtered_process(
        command(folder, kubeconfig_of(access, folder), *ENDPOINTS),
        folder / "log",
        place_of,
        calls={SPOOL.call},
        environment=later.environment,
    ) as agent:
        await until(lambda: agent.said("agent.handed-over"))
        yield agent


def spooled(folder: Path) -> str:
    """Return what the daemon reads."""
    return (folder / "spool" / CONFIGURATION).read_text()


async def test_a_document_is_handed_over_after_a_fault_that_passes(
    cluster: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    later = LaterClock(tmp_path / "clock")
    async with agent_with_faults(tmp_path, access, later) as agent:
        agent.calls.arm(Fault(SPOOL, errno.EIO))
        cluster.put(STATIC, dict(policy(2)))
        await until(lambda: agent.said("part.failed"))
        failing = await agent.metric(PART_FAILING.name, PART)
        await until(lambda: "cpu: '2'" in spooled(tmp_path))
        later.jump(STEADY)
        await until(lambda: agent.said("part.recovered"))
        working = await agent.metric(PART_FAILING.name, PART)
        failures = await agent.metric(PART_FAILURES.name, PART)
        failed, recovered = agent.said("part.failed"), agent.said("part.recovered")

    assert failing > 0
    assert (working, failures) == (0, 1)
    assert [(one["part"], one["again_in"]) for one in failed] == [(PART, 1)]
    assert f"{tmp_path}/spool: input/output error" in failed[0]["why"]
    assert [(one["part"], one["tries"]) for one in recovered] == [(PART, 1)]


async def test_a_part_that_cannot_come_back_ends_the_agent_in_order(
    cluster: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    later = LaterClock(tmp_path / "clock")
    async with agent_with_faults(tmp_path, access, later) as agent:
        agent.calls.arm(Fault(SPOOL, errno.EMFILE, times=ALWAYS))
        cluster.put(STATIC, dict(policy(2)))
        await until(lambda: agent.said("part.failed"))
        waiting, before = await agent.get("/healthz"), spooled(tmp_path)
        later.jump(LONGEST)
        status = await asyncio.wait_for(agent.process.wait(), 60)
        (lost,) = agent.said("part.lost")
        last_words = agent.last_words()
    async with agent_process(tmp_path, kubeconfig_of(access, tmp_path)) as next_one:
        await next_one.line("agent.handed-over")
        after = spooled(tmp_path)

    assert (waiting, status) == (WELL, FAILED)  # it may pass within five minutes
    assert lost["why"].startswith(f"{PART} has failed for 3")
    assert "too many open files" in lost["why"]
    assert last_words == f"nri-resmgr: {lost['why']}"
    assert ("cpu: '1'" in before, "cpu: '2'" in after) == (True, True)
