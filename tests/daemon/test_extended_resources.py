"""Extended resources of a real daemon, by a double of the kubelet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.node_features import FILE, FOLDER
from nri_resmgr.testing.kubelet.device_plugins import DevicePluginManager
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.test_control import ask, socket_in

pytestmark = pytest.mark.process

CPUS: Final = "resource-policy.nri.io/exclusive-cpus"
LISTS: Final = "cmk.intel.com/exclusive-cores"
MACHINE: Final = "1s2n4c1t"
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: "
STATIC: Final = f"""{HEAD}StaticPolicy
spec: {{reservedResources: {{cpu: 1}}, publish: {{exclusiveCPUs: true}}}}
"""
POOLS: Final = f"""{HEAD}StaticPoolsPolicy
spec:
  publish: {{exclusiveCPUs: true, nodeFeatures: true}}
  pools:
  - name: exclusive
    exclusive: true
    cpuLists: [{{cpus: 1}}, {{cpus: 2}}, {{cpus: 3}}]
"""
NOTHING: Final = (
    f"{HEAD}StaticPolicy\nspec: {{reservedResources: {{cpu: 1}}, allowLoss: true}}\n"
)


@asynccontextmanager
async def running(
    folder: Path, document: str, *flags: str
) -> AsyncIterator[RunningDaemon]:
    (folder / "config").write_text(document)
    flags = (
        *("--config-file", str(folder / "config"), "--kubelet-dir", str(folder / "k")),
        *("--control-socket", str(socket_in(folder)), *flags),
    )

    def add_folder(root: Path) -> None:
        (root / FOLDER).mkdir(parents=True)

    machine = parse_spec(MACHINE)
    async with daemon(folder, machine, *flags, before=add_folder) as made:
        yield made


@pytest.fixture
async def kubelet(tmp_path: Path) -> AsyncIterator[DevicePluginManager]:
    async with DevicePluginManager(tmp_path / "k/device-plugins") as made:
        yield made


async def create(
    running: RunningDaemon, name: str, cpus: int, env: Mapping[str, str] = {}
) -> str:
    """Run a pod whose container has this environment; return its CPUs."""
    workload = Workload(name, QosClass.GUARANTEED, cpus * 1000)
    pod = await running.runtime.run_pod(workload.pod)
    texts = tuple(f"{key}={text}" for key, text in env.items())
    container = replace(workload.container, env=texts)
    created = await running.runtime.create_container(pod.id, container)
    cpu = created.adjustment.resources.cpu
    return cpu.cpus if cpu else ""


def resources(folder: Path) -> Any:
    return Client(str(socket_in(folder))).get("/v1/state")["extendedResources"]


async def test_counts_follow(tmp_path: Path, kubelet: DevicePluginManager) -> None:
    """By grants, configurations, and CPUs that go."""
    async with running(tmp_path, STATIC) as daemon:
        endpoint = await kubelet.until(CPUS, allocatable=7, capacity=7)

        # Devices that are requested are counted by the scheduler and the kubelet.
        env = await kubelet.allocate(CPUS, "web", 2)
        assert len(await create(daemon, "web", 2, env)) == 3  # "1-2"
        # A container that requests none takes some away.
        await create(daemon, "silent", 3)
        await kubelet.until(CPUS, allocatable=4, capacity=7)
        assert set(endpoint.in_use["web"]) <= endpoint.healthy
        (shown,) = await asyncio.to_thread(resources, tmp_path)
        status = await ask(tmp_path, "status")
        explained = await ask(tmp_path, "explain", "default/web")

        # What the kubelet still offers, the policy grants.
        left = await kubelet.allocate(CPUS, "rest", 2)
        await create(daemon, "rest", 2, left)
        with pytest.raises(ValueError, match="0 available"):
            await kubelet.allocate(CPUS, "more", 1)

        # A kubelet that starts again gets the same.
        await kubelet.restart()
        await kubelet.until(CPUS, allocatable=4, capacity=7)

        # A CPU goes, and with it the exclusive CPUs of the container that had it.
        before = sysfs_files(parse_spec(MACHINE)).files
        for path, text in sysfs_files(parse_spec(f"{MACHINE} offline=7")).files.items():
            if before.get(path) != text:
                (tmp_path / f"host{path}").write_text(text)
        await kubelet.until(CPUS, allocatable=6, capacity=6)

        # Another document.
        gone = kubelet.endpoints[CPUS]
        (tmp_path / "config").write_text(NOTHING)
        await kubelet.until_stopped(gone)
        await daemon.line("device-plugin.withdrawn")

    assert shown == {
        "name": CPUS,
        "by": "device-plugin",
        "capacity": 7,
        "value": 4,
        "problem": "",
    }
    (line,) = (one for one in status.stdout.splitlines() if CPUS in one)
    assert line.split() == [CPUS, "device-plugin", "4", "of", "7"]
    assert f"2 {CPUS}" in explained.stdout


async def test_lists_of_cmk(tmp_path: Path, kubelet: DevicePluginManager) -> None:
    """Without a webhook: the plugin writes the number that the policy reads."""
    pool = {"STP_POOL": "exclusive"}
    file = tmp_path / "host" / FOLDER / FILE
    async with running(tmp_path, POOLS) as daemon:
        await kubelet.until(LISTS, allocatable=3, capacity=3)
        env = await kubelet.allocate(LISTS, "dpdk", 2)
        assert await create(daemon, "dpdk", 1, {**pool, **env}) == "1-2"
        await create(daemon, "silent", 1, pool)
        await kubelet.until(LISTS, allocatable=2, capacity=3)
        with pytest.raises(ValueError, match="0 available"):
            await kubelet.allocate(LISTS, "more", 1)
        features = file.read_text()

        (tmp_path / "config").write_text(NOTHING)
        await daemon.line("device-plugin.withdrawn")
        async with asyncio.timeout(60):
            while file.exists():  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.02)

    assert "nri-resmgr.policy=StaticPoolsPolicy\n" in features


async def test_without_a_kubelet_status_shows_the_reason(tmp_path: Path) -> None:
    async with running(tmp_path, STATIC) as daemon:
        await daemon.line("device-plugin.not-registered")
        await create(daemon, "web", 2)
        state = await ask(tmp_path, "status", "-o", "json")
        async with asyncio.timeout(60):
            while not json.loads(state.stdout)["extendedResources"]:
                state = await ask(tmp_path, "status", "-o", "json")

    (shown,) = json.loads(state.stdout)["extendedResources"]
    assert shown["problem"].endswith("kubelet.sock")


async def test_a_dry_run(tmp_path: Path, kubelet: DevicePluginManager) -> None:
    async with running(tmp_path, POOLS, "--dry-run") as daemon:
        await daemon.line("control.listening")
        async with asyncio.timeout(60):
            while not (shown := await asyncio.to_thread(resources, tmp_path)):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)

    assert [(one["name"], one["problem"]) for one in shown] == [(LISTS, "dry run")]
    assert kubelet.registrations == []
    assert not (tmp_path / "host" / FOLDER / FILE).exists()


async def test_a_file_of_features_that_cannot_be_written_is_reported(
    tmp_path: Path,
) -> None:
    document = STATIC.replace("exclusiveCPUs", "nodeFeatures")
    async with running(tmp_path, document) as daemon:
        file = tmp_path / "host" / FOLDER / FILE
        async with asyncio.timeout(60):
            while not file.exists():  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.02)
        file.unlink()
        file.parent.rmdir()
        (tmp_path / "config").write_text(document.replace("cpu: 1", "cpu: 2"))
        line = await daemon.line("features.not-written")

    assert line["why"].startswith(f"{file}: No such file or directory")
