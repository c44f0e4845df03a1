"""Which plugin is asked when, and what its refusal does to pods and containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.stub import Container, Plugin, Pod, RequestRejected, SocketUnusable
from nri_resmgr.testing import PluginRefused, Runtime
from tests.stub.conformance.several import several
from tests.stub.live import NAME, plugged, recording, running, stub_at

PODS = ["run_pod_sandbox", "stop_pod_sandbox", "remove_pod_sandbox"]
REQUESTS = ["create_container", "update_container", "stop_container"]
CONTAINERS = [
    "create_container",
    "post_create_container",
    "start_container",
    "post_start_container",
    "stop_container",
    "remove_container",
]
# The runtime removes a stopped pod's containers with it.
LIFE = [PODS[0], *CONTAINERS[:-1], PODS[1], CONTAINERS[-1], PODS[2]]


async def live_through(runtime: Runtime) -> None:
    pod = await runtime.run_pod(Pod())
    created = await runtime.create_container(pod.id, Container())
    await runtime.start_container(created.container.id)
    await runtime.stop_pod(pod.id)
    await runtime.remove_pod(pod.id)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(PODS, id="pods"),
        pytest.param(REQUESTS, id="requests"),
        pytest.param(CONTAINERS, id="containers"),
        pytest.param(LIFE, id="all"),
    ],
)
async def test_plugins_are_called_by_index_whatever_the_order_of_their_start(
    names: list[str], tmp_path: Path
) -> None:
    heard: list[str] = []
    plugins = {name: recording(heard, *names) for name in ("20-c", "99-d", "00-a")}
    async with several(tmp_path, plugins) as runtime:
        asked = runtime.plugins
        await live_through(runtime)

    life = [name for name in LIFE if name in names]
    assert asked == ("00-a", "20-c", "99-d")
    assert heard == [name for name in life for _ in range(3)]


def refusing_once(name: str) -> Plugin:
    """Make a plugin whose handler *name* raises the first time."""
    plugin = Plugin()
    refusals = [RequestRejected("not now")]

    def handler(*_: object) -> None:
        if refusals:
            raise refusals.pop()

    handler.__name__ = name
    plugin.handler(handler)
    return plugin


async def test_a_refused_pod_leaves_nothing_behind_and_a_retry_succeeds(
    tmp_path: Path,
) -> None:
    async with plugged(tmp_path, refusing_once("run_pod_sandbox")) as (runtime, _):
        with pytest.raises(PluginRefused, match="not now"):
            await runtime.run_pod(Pod())
        left = runtime.pods
        await runtime.run_pod(Pod())

        assert (left, len(runtime.pods), runtime.plugins) == ((), 1, (NAME,))


async def test_a_refused_container_leaves_nothing_behind_and_a_retry_succeeds(
    tmp_path: Path,
) -> None:
    async with plugged(tmp_path, refusing_once("create_container")) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        with pytest.raises(PluginRefused, match="not now"):
            await runtime.create_container(pod.id, Container())
        left = runtime.containers
        await runtime.create_container(pod.id, Container())

        assert (left, len(runtime.containers)) == ((), 1)


async def test_without_external_connections_there_is_no_socket(
    tmp_path: Path,
) -> None:
    with pytest.raises(SocketUnusable):
        await stub_at(tmp_path / "nri.sock", recording([], *REQUESTS)).run()


async def test_events_wait_for_a_late_plugin_s_synchronization(tmp_path: Path) -> None:
    heard: list[str] = []
    plugin = recording(heard, "synchronize", *CONTAINERS)
    async with Runtime(tmp_path) as runtime:
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())
        async with running(stub_at(runtime, plugin)):
            await runtime.synchronized(NAME)
            await runtime.create_container(pod.id, Container())

    assert heard == ["synchronize", "create_container", "post_create_container"]
