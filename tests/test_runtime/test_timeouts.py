"""Plugins that are late, gone, or wait for what cannot come."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from google.protobuf.message import Message

from nri_proto import CallReply, Code, Event, nri_pb2
from nri_resmgr.stub import Container, LinuxCpu, Pod
from nri_resmgr.testing import (
    Misbehaviour,
    Runtime,
    RuntimeOptions,
    SessionStep,
    UpdatesFailed,
    ValidatorLost,
)
from tests.test_runtime.peer import Answer, Peer

SHORT = RuntimeOptions(request_timeout=0.2)


def set_args(_: Message) -> Message:
    adjust = nri_pb2.ContainerAdjustment(args=["sh"])
    return nri_pb2.CreateContainerResponse(adjust=adjust)


def updates(container_id: str, cpus: str) -> nri_pb2.UpdateContainersRequest:
    resources = nri_pb2.LinuxResources(cpu=nri_pb2.LinuxCPU(cpus=cpus))
    linux = nri_pb2.LinuxContainerUpdate(resources=resources)
    update = nri_pb2.ContainerUpdate(container_id=container_id, linux=linux)
    return nri_pb2.UpdateContainersRequest(update=[update])


CREATE_ONLY = nri_pb2.ConfigureResponse(events=Event.CREATE_CONTAINER.bit)


async def test_a_late_plugin_is_dropped_and_the_creation_goes_on(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path, options=SHORT) as runtime:
        path = runtime.socket_path
        with ExitStack() as peers:
            answers: dict[str, Answer] = {
                "Configure": lambda _: CREATE_ONLY,
                "CreateContainer": lambda _: None,
            }
            late = peers.enter_context(Peer.connect(path, "late", "10", answers))
            peers.enter_context(
                Peer.connect(path, "good", "20", {"CreateContainer": set_args})
            )
            await runtime.synchronized("10-late")
            await runtime.synchronized("20-good")
            pod = await runtime.run_pod(Pod())
            start = time.monotonic()
            created = await runtime.create_container(pod.id, Container())

            assert time.monotonic() - start >= 0.2
            assert created.container.args == ("sh",)
            assert runtime.plugins == ("20-good",)
            await late.wait_disconnected()


async def test_a_late_validator_fails_the_creation(tmp_path: Path) -> None:
    answers: dict[str, Answer] = {"ValidateContainerAdjustment": lambda _: None}
    async with Runtime(tmp_path, options=SHORT) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers) as peer:
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            with pytest.raises(ValidatorLost) as refusal:
                await runtime.create_container(pod.id, Container())
            await peer.wait_disconnected()

        assert str(refusal.value) == (
            'validator "10-py" gave no answer: '
            "ValidateContainerAdjustment got no answer within 0.200 s"
        )


async def test_a_late_plugin_that_also_validates_fails_the_creation(
    tmp_path: Path,
) -> None:
    answers: dict[str, Answer] = {"CreateContainer": lambda _: None}
    async with Runtime(tmp_path, options=SHORT) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            with pytest.raises(ValidatorLost):
                await runtime.create_container(pod.id, Container())


async def test_a_validator_that_hangs_up_fails_the_creation(tmp_path: Path) -> None:
    answers: dict[str, Answer] = {
        "ValidateContainerAdjustment": lambda _: peer.shut_down()
    }
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers) as peer:
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            with pytest.raises(ValidatorLost) as refusal:
                await runtime.create_container(pod.id, Container())

        assert str(refusal.value) == ('validator "10-py" gave no answer: ttrpc: closed')


async def test_a_plugin_that_hangs_up_during_an_event_is_skipped(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")
            runtime.misbehave_now("10-py", Misbehaviour(hang_up=SessionStep.EVENT))
            await runtime.run_pod(Pod())
            await peer.wait_disconnected()

        assert runtime.plugins == ()
        assert peer.calls()[2:] == ["RunPodSandboxRequest"]
        assert [pod.id for pod in runtime.pods] == ["pod0"]


async def test_a_plugin_updates_containers_unasked(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            peer.call("UpdateContainers", updates("ctr0", "3"))
            peer.call("UpdateContainers", updates("missing", "3"))
            runtime.unupdatable.add("ctr9")
            peer.call("UpdateContainers", updates("ctr9", "3"))
            await peer.wait_replies(4)

    assert runtime.container("ctr0").cpu == LinuxCpu(cpus="3")
    assert sorted(peer.replies, key=lambda reply: reply.stream_id)[1:] == [
        CallReply(3, Code.OK),
        CallReply(5, Code.OK),
        CallReply(7, Code.UNKNOWN, "NRI update of (some) containers failed"),
    ]


async def test_an_update_from_inside_an_event_waits_until_the_plugin_is_dropped(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path, options=SHORT) as runtime:

        def wait_for_update(_: Message) -> None:
            peer.call("UpdateContainers", updates("ctr0", "3"))

        answers: dict[str, Answer] = {"StartContainer": wait_for_update}
        with Peer.connect(runtime.socket_path, answers=answers) as peer:
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            await runtime.start_container("ctr0")
            await peer.wait_disconnected()

        assert len(peer.replies) == 1  # that of RegisterPlugin
        assert runtime.plugins == ()
        assert runtime.container("ctr0").cpu == LinuxCpu(cpus="3")


@pytest.mark.parametrize("name", ["containerd", "cri-o"])
async def test_failing_updates_of_others_fail_a_creation_on_crio_only(
    name: str, tmp_path: Path
) -> None:
    def update_other(_: Message) -> Message:
        request = updates("other", "3")
        return nri_pb2.CreateContainerResponse(update=request.update)

    answers: dict[str, Answer] = {"CreateContainer": update_other}
    async with Runtime(tmp_path, name=name) as runtime:
        runtime.unupdatable.add("other")
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            if name == "cri-o":
                with pytest.raises(UpdatesFailed):
                    await runtime.create_container(pod.id, Container())
            else:
                await runtime.create_container(pod.id, Container())
                assert [str(error) for error in runtime.ignored] == [
                    "NRI update of (some) containers failed"
                ]


@pytest.mark.parametrize("event", [Event.STOP_CONTAINER, Event.REMOVE_CONTAINER])
async def test_errors_do_not_prevent_the_end_of_a_container(
    event: Event, tmp_path: Path
) -> None:
    answers: dict[str, Answer] = {event.method: lambda _: "boom"}
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            await runtime.remove_container("ctr0")

        assert runtime.containers == ()
        assert [str(error) for error in runtime.ignored] == [
            f"plugin '10-py' failed {event.method}: boom"
        ]
