"""Metrics and health of the real daemon, as Prometheus and the kubelet ask for them."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.stub.model import LinuxContainer, LinuxCpu, LinuxResources
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.control.daemon_parts import ask
from tests.control.json_schema import mistakes
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.documents import MACHINE as ONE_POOL
from tests.daemon.documents import document, write
from tests.daemon.host_nodes import run_in_cgroup
from tests.verification.cgroup_trees import V2, tree_with, v2

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("2s2n4c2t")
ENDPOINT: Final = ("--http-endpoint", "127.0.0.1:0")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningDaemon]:
    async with daemon(tmp_path, MACHINE, *ENDPOINT) as found:
        yield found


async def asked(
    running: RunningDaemon, path: str, method: str = "GET"
) -> tuple[int, str]:
    line = await running.line("http.listening")
    host, _, port = line["endpoint"].rpartition(":")

    def ask() -> tuple[int, str]:
        client = http.client.HTTPConnection(host, int(port), timeout=10)
        client.request(method, path)
        answer = client.getresponse()
        text = answer.read().decode()
        client.close()
        return answer.status, text

    return await asyncio.to_thread(ask)


async def metrics(running: RunningDaemon) -> dict[str, float]:
    _, text = await asked(running, "/metrics")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    pairs = (line.rpartition(" ") for line in lines)
    return {name: float(value) for name, _, value in pairs}


async def test_placements_and_refusals_are_counted_in_metrics(
    running: RunningDaemon,
) -> None:
    await running.place(Workload("own", QosClass.GUARANTEED, 2000))
    await running.place(Workload("many", QosClass.BURSTABLE, 500))
    with pytest.raises(PluginRefused):
        await running.place(Workload("huge", QosClass.GUARANTEED, 64000))

    found = await metrics(running)

    expected = {
        'nri_resmgr_requests_total{method="CreateContainer",status="ok"}': 2,
        'nri_resmgr_request_seconds_count{method="CreateContainer"}': 3,
        'nri_resmgr_decisions_total{event="created"}': 2,
        'nri_resmgr_rules_total{rule="whole-cpus"}': 1,
        'nri_resmgr_request_sources_total{source="oci"}': 2,
        'nri_resmgr_request_source_containers{source="oci"}': 2,
        "nri_resmgr_sessions_total": 1,
        "nri_resmgr_connected": 1,
        "nri_resmgr_synchronized": 1,
        "nri_resmgr_open_requests": 0,
        "nri_resmgr_configuration_generation": 1,
        'nri_resmgr_policy_info{policy="TopologyAwarePolicy"}': 1,
        'nri_resmgr_containers{cpus="exclusive",qos="Guaranteed"}': 1,
        'nri_resmgr_containers{cpus="shared",qos="Burstable"}': 1,
        'nri_resmgr_pool_capacity_cores{pool="root",kind="system"}': 31,
        'nri_policy_topologyaware_zone_cpu_shared_assigned_cores{zone="root"}': 0.5,
        'nri_policy_mem_node_capacity_bytes{node_id="0",node_type="DRAM"}': 16 << 30,
        'nri_policy_cpu_allocation{cpu_id="0"}': 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    refusals = {name for name in found if name.startswith("nri_resmgr_refusals_total")}
    assert len(refusals) == 1
    assert found["process_resident_memory_bytes"] > 1 << 20
    assert not [name for name in found if "many" in name]


async def test_updates_that_wait_for_a_reply_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(0, "TopologyAwarePolicy"))
    flags = (*ENDPOINT, "--config-file", str(path), "--unsolicited-updates", "never")
    names = ("", "_oldest_seconds")
    async with daemon(tmp_path, ONE_POOL, *flags) as running:
        await running.place(Workload("many", QosClass.BURSTABLE, 500))
        before = await metrics(running)
        write(path, document(7, "TopologyAwarePolicy"))
        running.process.send_signal(signal.SIGHUP)
        await running.line("configuration.accepted")
        waiting = await metrics(running)
        await running.place(Workload("other", QosClass.BURSTABLE, 500))
        after = await metrics(running)

    found = [
        [one[f"nri_resmgr_pending_updates{name}"] for name in names]
        for one in (before, waiting, after)
    ]
    assert found[0] == found[2] == [0, 0]
    assert found[1][0] == 1
    assert found[1][1] > 0


async def test_writes_to_cgroups_and_records_behind_them_are_counted(
    tmp_path: Path,
) -> None:
    flags = (*ENDPOINT, "--unsolicited-updates", "never")
    trees = V2 | v2("kubepods/many", "0-7") | v2("kubepods/own", "0-7")
    async with daemon(
        tmp_path, ONE_POOL, *flags, before=lambda root: tree_with(root, trees)
    ) as running:
        await run_in_cgroup(running.runtime, Workload("many", QosClass.BURSTABLE, 500))
        before = await metrics(running)
        await run_in_cgroup(running.runtime, Workload("own", QosClass.GUARANTEED, 2000))
        after = await metrics(running)

    names = ("", "_oldest_seconds")
    records = [
        [one[f"nri_resmgr_record_updates_pending{name}"] for name in names]
        for one in (before, after)
    ]
    written = 'nri_resmgr_cgroup_writes_total{result="written"}'
    assert after[written] > before[written]
    assert after["nri_resmgr_late_starts_total"] == 0
    # This runtime learns of them with its next request.
    assert records[0] == [0, 0]
    assert records[1][0] == 1
    assert records[1][1] > 0


ABSENT: Final = """\
apiVersion: config.nri/v1alpha1
kind: StaticPolicy
spec:
  availableResources: {cpu: "cpuset:0-4095"}
  reservedResources: {cpu: "cpuset:0,99"}
"""


async def test_settings_without_effect_are_counted_and_shown(tmp_path: Path) -> None:
    path, control = write(tmp_path / "my.yaml", ABSENT), tmp_path / "c.sock"
    flags = (*ENDPOINT, "--config-file", str(path), "--control-socket", str(control))
    async with daemon(tmp_path, MACHINE, *flags) as running:
        await running.line("control.listening")
        found = await metrics(running)
        state = await ask(Client(str(control)), "/v1/state")

    # One list of available CPUs is for machines of several sizes.
    assert found["nri_resmgr_configuration_left_out"] == 1
    there = "used as soon as it is there"
    assert mistakes(state, "State") == []
    assert state["configuration"]["leftOut"] == [
        {
            "path": "$.spec.availableResources.cpu",
            "why": f"this machine has no CPU 32-4095; {there}",
        },
        {
            "path": "$.spec.reservedResources.cpu",
            "why": f"this machine has no CPU 99; {there}",
        },
    ]


async def test_ways_of_updates_are_counted(running: RunningDaemon) -> None:
    await running.place(Workload("one", QosClass.BURSTABLE, 500))
    found = await metrics(running)

    # The folder that is the host here has no cgroups.
    assert found["nri_resmgr_containers_by_runtime"] == 1
    assert not [name for name in found if "cgroup_writes" in name]


async def test_pods_are_named_only_if_asked_for(tmp_path: Path) -> None:
    flags = (*ENDPOINT, "--metrics-per-container")
    async with daemon(tmp_path, MACHINE, *flags) as running:
        await running.place(Workload("many", QosClass.BURSTABLE, 500))
        found = await metrics(running)

    name = "nri_resmgr_container_request_cores"
    assert {n: v for n, v in found.items() if n.startswith(name)} == {
        f'{name}{{namespace="default",pod="many",container="many"}}': 0.5
    }


async def test_health_is_reported(running: RunningDaemon) -> None:
    found = {path: await asked(running, path) for path in ("/healthz", "/readyz", "/")}

    assert found == {
        "/healthz": (200, "ok\n"),
        "/readyz": (200, "ok\n"),
        "/": (404, "no such path: /\n"),
    }


async def test_metrics_accept_no_method_that_changes_anything(
    running: RunningDaemon,
) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert await asked(running, "/metrics", method) == (405, "only GET, HEAD\n")


async def test_without_a_runtime_the_daemon_is_alive_and_not_ready(
    tmp_path: Path,
) -> None:
    async with daemon(tmp_path, MACHINE, *ENDPOINT) as running:
        await running.line("http.listening")
        await running.runtime.stop()
        await running.line("session.ended")
        ready = await asked(running, "/readyz")
        alive = await asked(running, "/healthz")
        found = await metrics(running)
        await running.runtime.start()
        await running.runtime.synchronized("90-resource-policy")
        again = await asked(running, "/readyz")

    assert ready[0] == 503
    assert ready[1].startswith("no session with a runtime: ")
    assert (alive, again) == ((200, "ok\n"), (200, "ok\n"))
    assert (found["nri_resmgr_connected"], found["nri_resmgr_sessions_total"]) == (0, 1)


async def test_a_port_in_use_is_retried(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        endpoint = f"127.0.0.1:{other.getsockname()[1]}"
        async with daemon(tmp_path, MACHINE, "--http-endpoint", endpoint) as running:
            line = await running.line("http.not-listening")
            await running.place(Workload("many", QosClass.BURSTABLE, 500))

    assert line["why"] == f"cannot listen on {endpoint}: address already in use"


@pytest.mark.parametrize("endpoint", ["8891", "localhost:8891", ":99999", "::1:80"])
def test_a_bad_endpoint_is_refused_before_the_start(endpoint: str) -> None:
    done = nri_resmgr("run", "--http-endpoint", endpoint)

    assert done.returncode == 2
    assert done.stderr == (
        f"nri-resmgr: --http-endpoint: {endpoint!r}: expected [ADDRESS]:PORT, such as "
        ":8891 for this host only, 10.0.0.7:8891, or [::]:8891 for every address\n"
    )


def let_the_kubelet_pin(root: Path) -> None:
    folder = root / "var/lib/kubelet"
    folder.mkdir(parents=True)
    (folder / "cpu_manager_state").write_text('{"policyName": "static"}')


async def test_a_kubelet_that_pins_is_logged_and_counted(tmp_path: Path) -> None:
    before = let_the_kubelet_pin
    async with daemon(tmp_path, MACHINE, *ENDPOINT, before=before) as running:
        line = await running.line("kubelet.manager-conflict")
        found = await metrics(running)

    assert (line["level"], line["manager"]) == ("warning", "cpu")
    assert found['nri_resmgr_kubelet_manager{manager="cpu",policy="static"}'] == 1


async def test_a_kubelet_is_reported_although_its_files_are_not_visible(
    tmp_path: Path,
) -> None:
    """As from a pod: its requests show its static manager."""
    workload = Workload("db", QosClass.BURSTABLE, 500)
    linux = LinuxContainer(resources=LinuxResources(cpu=LinuxCpu(cpus="0-3")))
    container = msgspec.structs.replace(
        workload.container, labels={KUBELET_NAME: "db"}, linux=linux
    )
    async with daemon(tmp_path, MACHINE, *ENDPOINT) as running:
        pod = await running.runtime.run_pod(workload.pod)
        await running.runtime.create_container(pod.id, container)
        line = await running.line("kubelet.manager-conflict")
        found = await metrics(running)

    assert "CPUs 0-3 were requested for" in line["why"]
    assert found['nri_resmgr_kubelet_manager{manager="cpu",policy="unknown"}'] == 1


async def test_checkpoints_are_counted(tmp_path: Path) -> None:
    state = ("--state-dir", str(tmp_path / "state"))
    async with daemon(tmp_path, MACHINE, *ENDPOINT, *state) as running:
        await running.place(Workload("many", QosClass.BURSTABLE, 500))
        found = await metrics(running)
        async with asyncio.timeout(10):
            while not found["nri_resmgr_checkpoint_bytes"]:
                found = await metrics(running)

    assert found["nri_resmgr_checkpoint_writes_total"] >= 1
    assert found["nri_resmgr_checkpoint_failures_total"] == 0


def write_times(root: Path, busy: int) -> None:
    """Write the times of the CPUs: each was busy for *busy* ticks."""
    lines = [f"cpu{cpu} {busy} 0 0 900 0 0 0 0 0 0\n" for cpu in MACHINE.online]
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/stat").write_text("".join(lines))


async def test_busy_cpus_are_counted_by_pool(tmp_path: Path) -> None:
    name = 'nri_resmgr_pool_busy_cpu_seconds_total{pool="socket #1",kind="package"}'
    second = os.sysconf("SC_CLK_TCK")
    async with daemon(
        tmp_path, MACHINE, *ENDPOINT, before=lambda root: write_times(root, 100)
    ) as running:
        first = await metrics(running)
        write_times(tmp_path / "host", 100 + second)
        found = await metrics(running)
        (tmp_path / "host/proc/stat").unlink()
        without = await metrics(running)

    assert (first[name], found[name]) == (0, len(MACHINE.packages[1].cpus))
    assert name not in without
    assert without.keys() > {"nri_resmgr_connected"}
