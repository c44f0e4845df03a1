"""What a plugin's error does to a request, on containerd and on CRI-O."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.stub import Container, ContainerState, LinuxResources, Pod
from nri_resmgr.testing import PluginRefused, Runtime
from tests.test_runtime.peer import Answer, Peer

BOTH = pytest.mark.parametrize("name", ["containerd", "cri-o"])


def failing(*methods: str) -> dict[str, Answer]:
    return {method: lambda _: "boom" for method in methods}


@BOTH
async def test_a_pod_that_is_refused_is_stopped_and_removed(
    name: str, tmp_path: Path
) -> None:
    answers = failing("RunPodSandbox")
    async with Runtime(tmp_path, name=name) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            with pytest.raises(PluginRefused):
                await runtime.run_pod(Pod())

        assert runtime.pods == ()
        assert runtime.calls_to("10-py")[2:] == [
            "RunPodSandbox",
            "StopPodSandbox",
            "RemovePodSandbox",
        ]


async def test_a_pod_update_is_refused(tmp_path: Path) -> None:
    answers = failing("UpdatePodSandbox")
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            with pytest.raises(PluginRefused):
                await runtime.update_pod(pod.id)

        assert runtime.calls_to("10-py")[-1] == "UpdatePodSandbox"


@pytest.mark.parametrize(
    ("name", "undone"),
    [("containerd", ["StopContainer", "RemoveContainer"]), ("cri-o", [])],
)
async def test_a_refused_creation_is_undone_by_containerd(
    name: str, undone: list[str], tmp_path: Path
) -> None:
    answers = failing("CreateContainer")
    async with Runtime(tmp_path, name=name) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            with pytest.raises(PluginRefused):
                await runtime.create_container(pod.id, Container())

        assert runtime.containers == ()
        assert runtime.calls_to("10-py")[3:] == ["CreateContainer", *undone]


async def test_containerd_kills_a_container_that_may_not_start(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        answers = failing("StartContainer")
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            with pytest.raises(PluginRefused):
                await runtime.start_container("ctr0")

        assert runtime.container("ctr0").state is ContainerState.STOPPED


async def test_crio_starts_it_all_the_same(tmp_path: Path) -> None:
    async with Runtime(tmp_path, name="cri-o") as runtime:
        answers = failing("StartContainer")
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            started = await runtime.start_container("ctr0")

        assert started.state is ContainerState.RUNNING
        assert [str(error) for error in runtime.ignored] == [
            "plugin '10-py' failed StartContainer: boom"
        ]


@BOTH
async def test_a_refused_update_changes_nothing(name: str, tmp_path: Path) -> None:
    async with Runtime(tmp_path, name=name) as runtime:
        answers = failing("UpdateContainer")
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            created = await runtime.create_container(pod.id, Container())
            with pytest.raises(PluginRefused):
                await runtime.update_container("ctr0", LinuxResources())

        assert runtime.container("ctr0") == created.container


async def test_an_error_holds_up_the_stop_of_a_pod_on_crio_only(
    tmp_path: Path,
) -> None:
    answers = failing("StopPodSandbox")
    for name in ("cri-o", "containerd"):
        async with Runtime(tmp_path, name=name) as runtime:
            with Peer.connect(runtime.socket_path, answers=answers):
                await runtime.synchronized("10-py")
                pod = await runtime.run_pod(Pod())
                if name == "cri-o":
                    with pytest.raises(PluginRefused):
                        await runtime.stop_pod(pod.id)
                else:
                    await runtime.stop_pod(pod.id)

            assert len(runtime.ignored) == (name == "containerd")


async def test_a_pod_takes_its_containers_along(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            await runtime.start_container("ctr0")
            await runtime.remove_pod(pod.id)

        assert (runtime.pods, runtime.containers) == ((), ())
        assert runtime.calls_to("10-py")[-3:] == [
            "StopContainer",
            "RemoveContainer",
            "RemovePodSandbox",
        ]
