"""The real daemon with the kubelet's Pods API: what it shows, and over its restarts."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client, NoDaemon
from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet.sockets import POD_RESOURCES, PODS_API
from nri_resmgr.testing.kubelet.pod_resources import LIST, FakePodResources
from nri_resmgr.testing.kubelet.pods import PodsService, container, pod
from nri_resmgr.testing.kubelet.server import KubeletServer
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.control.daemon_parts import ask
from tests.control.json_schema import mistakes
from tests.daemon.daemon_process import daemon
from tests.daemon.host_nodes import PLAIN, HostNode, host_node
from tests.kubelet.node import container_of, sandbox_of

pytestmark = pytest.mark.process

CAPACITY = 64 << 30


def web() -> core.Pod:
    asked = {"cpu": "1m", "memory": "1Mi"}
    return pod("uid-1", container("web", asked), priority=1_000_000)


async def run(node: HostNode, one: core.Pod) -> None:
    await node.runtime.run_pod(sandbox_of(one))
    for each in one.spec.containers:
        made = container_of(one, each, CAPACITY)
        await node.runtime.create_container(one.metadata.uid, made)
        await node.runtime.start_container(made.id)


def maps_of(process: int) -> str:
    """Return what is mapped into a process."""
    return Path(f"/proc/{process}/maps").read_text()


class Asked:
    """The daemon, asked by its control socket."""

    def __init__(self, folder: Path) -> None:
        self._client = Client(str(folder / "run/control.sock"))
        self.state: dict[str, Any] = {}

    async def becomes(self, source: str, problem: str = "") -> None:
        """Wait for the source of all containers, and for a problem of the kubelet."""
        self.state = {}
        async with asyncio.timeout(60):
            while not self._holds(source, problem):
                await asyncio.sleep(0.05)
                # The socket comes after the first session has begun.
                with contextlib.suppress(NoDaemon):
                    self.state = await ask(self._client, "/v1/state")

    def _holds(self, source: str, problem: str) -> bool:
        if not self.state:
            return False
        service, *_ = self.state["kubeletServices"]
        sources = {one["source"] for one in self.state["containers"]}
        found = service["problem"]
        return sources == {source} and (problem in found if problem else not found)

    async def explanation(self) -> str:
        found = await ask(self._client, "/v1/explain", pod="uid-1")
        return render_explanation(found)


async def test_status_and_explain_show_where_amounts_are_from(tmp_path: Path) -> None:
    asked, service = Asked(tmp_path), PodsService()
    server = KubeletServer(tmp_path / PODS_API.socket, service)
    flags = ("--kubelet-dir", str(tmp_path), "--control-socket")
    socket = str(tmp_path / "run/control.sock")
    async with host_node(tmp_path, PLAIN) as node:
        async with server, node.daemon(*flags, socket) as process:
            await run(node, web())
            await asked.becomes("oci")
            # grpclib would load it, which takes 3 MiB.
            assert "libssl" not in maps_of(process.pid)
            assert mistakes(asked.state, "State") == []
            assert asked.state["containers"][0]["priority"] is None
            assert "priority" not in await asked.explanation()
            text = render_status(asked.state)
            assert "kubelet        v1alpha1.Pods in use: 0 pods known" in text
            assert "requests       1 by oci (estimated)" in text
            assert "which CPU and limits of cgroup values" in await asked.explanation()

            service.put(web())
            await asked.becomes("kubelet")
            text = render_status(asked.state)
            assert "v1alpha1.Pods in use: 1 pod known" in text
            assert "requests       1 by kubelet (exact)" in text
            assert mistakes(asked.state, "State") == []
            explanation = await asked.explanation()
            assert "source   kubelet, exact" in explanation
            assert "priority 1000000, kubelet" in explanation

            await server.stop()
            await asked.becomes("kubelet", problem="pods-api.sock: no such socket")

        # Without the kubelet, what it has said counts.
        async with node.daemon(*flags, socket):
            await asked.becomes("kubelet", problem="no such socket")
            (container,) = asked.state["containers"]
            assert container["request"]["cpu"] == 1
            assert container["priority"] == {"value": 1_000_000, "source": "kubelet"}

            async with server:
                await asked.becomes("kubelet")


async def test_the_kubelets_sockets_can_be_left_alone(tmp_path: Path) -> None:
    asked, service = Asked(tmp_path), PodsService()
    service.put(web())
    async with (
        host_node(tmp_path, PLAIN) as node,
        KubeletServer(tmp_path / PODS_API.socket, service) as server,
    ):
        socket = ("--control-socket", str(tmp_path / "run/control.sock"))
        async with node.daemon("--kubelet-dir", "none", *socket):
            await run(node, web())
            await asked.becomes("oci", problem="off, by --kubelet-dir")
            assert not server.calls


async def test_a_document_keeps_the_daemon_from_asking_about_devices(
    tmp_path: Path,
) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nspec:\n"
        "  agent: {podResourceAPI: false}\n"
        "  reservedResources: {cpu: 'cpuset:0'}\n  balloonTypes:\n"
        "  - {name: gpu, preferCloseToDevices: ['podresourceapi:*/gpu']}\n"
    )
    control = tmp_path / "control.sock"
    flags = ("--config-file", str(file), "--control-socket", str(control))
    more = ("--kubelet-dir", str(tmp_path), "--state-dir", "")
    machine = parse_spec("1s2n4c1t")
    server = KubeletServer(tmp_path / POD_RESOURCES.socket, FakePodResources())
    async with server, daemon(tmp_path, machine, *flags, *more) as running:
        line = await running.line("configuration.warning")
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        off = await problem_of(control)
        calls = dict(server.calls)

        file.write_text(file.read_text().replace("API: false", "API: true"))
        running.process.send_signal(signal.SIGHUP)
        await running.line("configuration.accepted")
        await running.place(Workload("other", QosClass.GUARANTEED, 1000))
        async with asyncio.timeout(60):
            while await problem_of(control):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)

    assert (line["path"], line["why"]) == (
        "$.spec.balloonTypes[0].preferCloseToDevices[0]",
        "podresourceapi:*/gpu has no effect: agent.podResourceAPI is false",
    )
    assert off == "off, by agent.podResourceAPI, until a container has claims"
    assert calls == {}
    assert server.calls[LIST] == 1


async def problem_of(control: Path) -> str:
    state: dict[str, Any] = {}
    async with asyncio.timeout(60):
        while not state:
            # The socket comes after the first session has begun.
            with contextlib.suppress(NoDaemon):
                state = await ask(Client(str(control)), "/v1/state")
            await asyncio.sleep(0.01)
    services = {one["service"]: one["problem"] for one in state["kubeletServices"]}
    return str(services[POD_RESOURCES.name])


async def test_devices_are_reported_as_unknown_where_no_socket_is_used(
    tmp_path: Path,
) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nspec:\n"
        "  reservedResources: {cpu: 'cpuset:0'}\n  balloonTypes:\n"
        "  - {name: gpu, preferCloseToDevices: ['podresourceapi:*/gpu']}\n"
    )
    flags = ("--config-file", str(file), "--control-socket", "", "--state-dir", "")
    machine = parse_spec("1s2n4c1t")
    async with daemon(tmp_path, machine, *flags, "--kubelet-dir", "none") as running:
        line = await running.line("configuration.warning")

    assert (line["path"], line["why"]) == (
        "$.spec.balloonTypes[0].preferCloseToDevices[0]",
        "podresourceapi:*/gpu has no effect: --kubelet-dir is none",
    )
