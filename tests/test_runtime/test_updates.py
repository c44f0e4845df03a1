"""Updates that plugins ask for reach the containers and the next plugin."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_resmgr.stub import Container, ContainerUpdate, LinuxCpu, LinuxResources, Pod
from nri_resmgr.testing import Runtime
from tests.test_runtime.peer import Peer


async def test_updates_in_replies_are_applied_to_the_others(tmp_path: Path) -> None:
    def shrink(request: Message) -> Message:
        resources = nri_pb2.LinuxResources(cpu=nri_pb2.LinuxCPU(cpus="0"))
        linux = nri_pb2.LinuxContainerUpdate(resources=resources)
        update = nri_pb2.ContainerUpdate(container_id="ctr0", linux=linux)
        assert isinstance(request, nri_pb2.CreateContainerRequest)
        is_first = request.container.id == "ctr0"
        return nri_pb2.CreateContainerResponse(update=[] if is_first else [update])

    async with Runtime(tmp_path) as runtime:
        answers = {"CreateContainer": shrink}
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            created = await runtime.create_container(pod.id, Container())

        assert created.updates == (ContainerUpdate("ctr0").set_cpus("0"),)
        assert runtime.container("ctr0").cpu == LinuxCpu(cpus="0")


async def test_a_pending_update_is_seen_as_the_last_plugin_left_it(
    tmp_path: Path,
) -> None:
    seen: list[nri_pb2.LinuxResources] = []

    def pin(request: Message) -> Message:
        assert isinstance(request, nri_pb2.UpdateContainerRequest)
        seen.append(request.linux_resources)
        resources = nri_pb2.LinuxResources(cpu=nri_pb2.LinuxCPU(cpus="1"))
        linux = nri_pb2.LinuxContainerUpdate(resources=resources)
        update = nri_pb2.ContainerUpdate(container_id="ctr0", linux=linux)
        is_first = len(seen) == 1
        return nri_pb2.UpdateContainerResponse(update=[update] if is_first else [])

    async with Runtime(tmp_path) as runtime:
        path, answers = runtime.socket_path, {"UpdateContainer": pin}
        with (
            Peer.connect(path, "a", "10", answers),
            Peer.connect(path, "b", "20", answers),
        ):
            await runtime.synchronized("10-a")
            await runtime.synchronized("20-b")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            wanted = LinuxResources(cpu=LinuxCpu(shares=100))
            updated = await runtime.update_container("ctr0", wanted)

    shares = nri_pb2.LinuxCPU(shares=nri_pb2.OptionalUInt64(value=100))
    assert seen[0].cpu == shares
    shares.cpus = "1"
    assert seen[1].cpu == shares
    assert updated.container.cpu == LinuxCpu(cpus="1", shares=100)


async def test_an_update_may_fail_that_ignores_failure(tmp_path: Path) -> None:
    def update_other(_: Message) -> Message:
        update = nri_pb2.ContainerUpdate(container_id="other", ignore_failure=True)
        return nri_pb2.CreateContainerResponse(update=[update])

    async with Runtime(tmp_path, name="cri-o") as runtime:
        runtime.unupdatable.add("other")
        answers = {"CreateContainer": update_other}
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())

        assert runtime.ignored == []
