"""Metrics and health of the agent: a restart is asked for only where it helps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.agent.api import Access, ApiClient, Resource, Target
from nri_resmgr.agent.api.errors import KindMissing, Unreachable
from nri_resmgr.agent.daemon_state import (
    JudgedAdjustment,
    JudgedAdjustments,
    JudgedConfiguration,
    Verdicts,
)
from nri_resmgr.agent.metrics import (
    METRICS,
    TOPOLOGY,
    WATCH_AGE,
    WATCHES,
    AgentCounters,
    By,
    What,
    series_of_watches,
)
from nri_resmgr.app.metrics.text import Series
from tests.agent.agent_process import (
    ENDPOINTS,
    NODE,
    agent_process,
    kubeconfig_of,
)
from tests.agent.fake_api_server import FakeApiServer, Request, Wire, status

NODES: Final = "/api/v1/nodes"
STATIC: Final = "/apis/config.nri/v1alpha1/namespaces/kube-system/staticpolicies"
KINDS: Final = {
    "/nodes",
    "config.nri/staticpolicies",
    "config.nri/noderesourcemanagers",
}
POLICY: Final = {
    "metadata": {"name": "default"},
    "spec": {"reservedResources": {"cpu": "1"}},
}


@pytest.fixture
def cluster(server: FakeApiServer) -> FakeApiServer:
    """A server with a node and its policy."""
    server.kinds = set(KINDS)
    server.put(NODES, {"metadata": {"name": NODE}})
    server.put(STATIC, POLICY)
    return server


@pytest.mark.process
async def test_all_metrics_are_served(
    cluster: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    kubeconfig = kubeconfig_of(access, tmp_path)
    async with agent_process(tmp_path, kubeconfig, *ENDPOINTS) as agent:
        wanted = 'agent_writes_total{resource="noderesourcemanagers/status"'
        _, text = await agent.until("/metrics", lambda _, found: wanted in found)
        missing = 'agent_watches{resource="balloonspolicies",state="no-kind"} 2'
        _, text = await agent.until("/metrics", lambda _, found: missing in found)
        handed_over = 'agent_handed_over_total{what="configuration"} 1'
        _, text = await agent.until("/metrics", lambda _, found: handed_over in found)

    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    # No document asks for it here.
    assert {one.name for one in METRICS} - names == {TOPOLOGY.name}
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    prefix = "nri_resmgr_agent_"
    assert lines[f"{prefix}ready"] == "1"
    assert lines[f"{prefix}daemon_answers"] == "0"
    assert lines[f'{prefix}watches{{resource="nodes",state="current"}}'] == "1"
    assert lines[f'{prefix}watches{{resource="staticpolicies",state="current"}}'] == "2"
    assert lines[f'{prefix}api_requests_total{{verb="watch",code="200"}}'] == "3"
    assert int(lines[f'{prefix}api_requests_total{{verb="list",code="404"}}']) > 2
    assert float(lines["process_resident_memory_bytes"]) > 0


@pytest.mark.process
async def test_an_unreachable_api_server_does_not_fail_the_liveness_probe(
    cluster: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    kubeconfig = kubeconfig_of(access, tmp_path)
    await cluster.__aexit__()
    async with agent_process(tmp_path, kubeconfig, *ENDPOINTS) as agent:
        first = await agent.until("/readyz", lambda _, text: "no answer from" in text)
        alive = await agent.get("/healthz", "health.listening")
        await cluster.__aenter__()
        then = await agent.until("/readyz", lambda status, _: status == 200)
        await cluster.__aexit__()
        await agent.until("/metrics", lambda _, text: 'state="failing"' in text)
        away = [await agent.get(path) for path in ("/healthz", "/readyz")]
        await cluster.__aenter__()

    assert (first[0], alive) == (503, (200, "ok\n"))
    assert then == (200, "ok\n")
    # What is known stays in use.
    assert away == [(200, "ok\n")] * 2


@pytest.mark.process
async def test_a_missing_right_keeps_a_roll_out_and_not_the_process(
    cluster: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    async def forbid(request: Request, wire: Wire) -> bool:
        if "staticpolicies" not in request.path:
            return False
        cluster.faults.append(forbid)  # for good
        await wire.answer(403, status(403, "Forbidden", "User cannot do that"))
        return True

    cluster.faults = [forbid]
    kubeconfig = kubeconfig_of(access, tmp_path)
    async with agent_process(tmp_path, kubeconfig, *ENDPOINTS) as agent:
        code, why = await agent.until("/readyz", lambda _, text: "403" in text)
        alive = await agent.get("/healthz")

    assert code == 503
    assert 'resources: ["staticpolicies"]' in why
    assert alive == (200, "ok\n")


@pytest.mark.process
@pytest.mark.parametrize("flag", ["--http-endpoint", "--health-endpoint"])
async def test_an_invalid_endpoint_is_bad_input(
    flag: str, cluster: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    assert cluster.port
    kubeconfig = kubeconfig_of(access, tmp_path)
    async with agent_process(tmp_path, kubeconfig, flag, "everywhere") as agent:
        assert agent.process.stderr is not None
        said = await agent.process.stderr.read()
        code = await agent.process.wait()

    assert code == 2
    assert f"{flag}: 'everywhere': expected".encode() in said


def values(found: list[Series]) -> dict[str, dict[tuple[str, ...], object]]:
    return {one.metric.name: dict(one.values) for one in found}


async def test_watches_are_counted_by_state_and_the_oldest_has_the_age(
    access: Access,
) -> None:
    nodes = Resource("", "v1", "nodes", "Node", is_namespaced=False)
    async with ApiClient.open(access) as api:
        watches = [api.watcher(Target(nodes, name=str(n)), _ignore) for n in range(5)]
    watches[0].heard = 90.0
    watches[1].heard, watches[1].error = 40.0, Unreachable("https://api", "away")
    watches[2].error = KindMissing(nodes)
    watches[3].heard = 99.5

    found = values(list(series_of_watches(watches, 100.0)))

    assert found == {
        WATCHES.name: {
            ("nodes", "current"): 2,
            ("nodes", "failing"): 1,
            ("nodes", "no-kind"): 1,
            ("nodes", "opening"): 1,
        },
        WATCH_AGE.name: {("nodes",): 60.0},
    }


def _ignore(_: object) -> None:
    """Take what a watch reports."""


def test_each_version_that_the_daemon_rejects_is_counted_once() -> None:
    counters = AgentCounters()

    def judged(digest: str, verdict: str, *adjustments: str) -> Verdicts:
        found = tuple(JudgedAdjustment(verdict=one) for one in adjustments)
        return Verdicts(
            JudgedConfiguration(digest=digest, verdict=verdict),
            JudgedAdjustments(digest=f"{digest}-{len(found)}", objects=found),
        )

    for verdicts in (
        judged("a", "rejected", "rejected", "ignored", "rejected"),
        judged("a", "rejected", "rejected", "ignored", "rejected"),
        judged("b", "accepted"),
        judged("a", "rejected"),
    ):
        counters.note(verdicts)

    assert counters.rejected == {
        (What.CONFIGURATION, By.AGENT): 0,
        (What.CONFIGURATION, By.DAEMON): 2,
        (What.ADJUSTMENTS, By.AGENT): 0,
        (What.ADJUSTMENTS, By.DAEMON): 2,
    }


def test_names_of_metrics_follow_the_conventions_of_prometheus() -> None:
    for one in METRICS:
        assert one.name.startswith("nri_resmgr_agent_")
        assert one.name.endswith("_total") == (one.kind == "counter")
