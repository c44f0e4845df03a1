"""Events reach the plugins that want them, in order and in the runtime's words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from google.protobuf.message import Message

from nri_proto import Event, NriLevel, mask_of, nri_pb2
from nri_resmgr.stub import Container, LinuxResources, Pod
from nri_resmgr.testing import (
    AdjustmentRejected,
    FieldConflict,
    PluginRefused,
    Runtime,
)
from tests.test_runtime.peer import Answer, Peer


async def live(runtime: Runtime) -> None:
    """Lead a pod and a container through a whole life."""
    pod = await runtime.run_pod(Pod(name="web"))
    await runtime.update_pod(pod.id)
    created = await runtime.create_container(pod.id, Container(name="app"))
    await runtime.start_container(created.container.id)
    await runtime.update_container(created.container.id, LinuxResources())
    await runtime.stop_pod(pod.id)
    await runtime.remove_pod(pod.id)


def subscribe(*events: Event) -> Answer:
    return lambda _: nri_pb2.ConfigureResponse(events=mask_of(events))


# A whole life, in order, at levels with a call for each event.
LIFE = (
    Event.RUN_POD_SANDBOX,
    Event.UPDATE_POD_SANDBOX,
    Event.POST_UPDATE_POD_SANDBOX,
    Event.CREATE_CONTAINER,
    Event.VALIDATE_CONTAINER_ADJUSTMENT,
    Event.POST_CREATE_CONTAINER,
    Event.START_CONTAINER,
    Event.POST_START_CONTAINER,
    Event.UPDATE_CONTAINER,
    Event.POST_UPDATE_CONTAINER,
    Event.STOP_CONTAINER,
    Event.STOP_POD_SANDBOX,
    Event.REMOVE_CONTAINER,
    Event.REMOVE_POD_SANDBOX,
)


@pytest.mark.parametrize("event", Event, ids=lambda event: event.method)
async def test_a_single_subscription_brings_that_event(
    event: Event, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        answers = {"Configure": subscribe(event)}
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            await live(runtime)

        assert runtime.calls_to("10-py") == ["Configure", "Synchronize", event.method]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param(NriLevel(0, 13), [event.method for event in LIFE], id="0.13"),
        pytest.param(NriLevel(0, 12), [event.method for event in LIFE], id="0.12"),
        pytest.param(
            NriLevel(0, 10),
            [
                "StateChange(RUN_POD_SANDBOX)",
                "UpdatePodSandbox",
                "StateChange(POST_UPDATE_POD_SANDBOX)",
                "CreateContainer",
                "ValidateContainerAdjustment",
                "StateChange(POST_CREATE_CONTAINER)",
                "StateChange(START_CONTAINER)",
                "StateChange(POST_START_CONTAINER)",
                "UpdateContainer",
                "StateChange(POST_UPDATE_CONTAINER)",
                "StopContainer",
                "StateChange(STOP_POD_SANDBOX)",
                "StateChange(REMOVE_CONTAINER)",
                "StateChange(REMOVE_POD_SANDBOX)",
            ],
            id="0.10 has StateChange",
        ),
        pytest.param(
            NriLevel(0, 3),
            [
                "StateChange(RUN_POD_SANDBOX)",
                "CreateContainer",
                "StateChange(POST_CREATE_CONTAINER)",
                "StateChange(START_CONTAINER)",
                "StateChange(POST_START_CONTAINER)",
                "UpdateContainer",
                "StateChange(POST_UPDATE_CONTAINER)",
                "StopContainer",
                "StateChange(STOP_POD_SANDBOX)",
                "StateChange(REMOVE_CONTAINER)",
                "StateChange(REMOVE_POD_SANDBOX)",
            ],
            id="0.3 has neither pod updates nor validation",
        ),
    ],
)
async def test_mask_0_subscribes_to_all_events_of_the_level(
    level: NriLevel, expected: list[str], tmp_path: Path
) -> None:
    async with Runtime(tmp_path, level) as runtime:
        with Peer.connect(runtime.socket_path):
            await runtime.synchronized("10-py")
            await live(runtime)

        assert runtime.calls_to("10-py")[2:] == expected


async def test_an_unimplemented_call_brings_state_changes_for_good(
    tmp_path: Path,
) -> None:
    answers: dict[str, Answer] = {
        "Configure": subscribe(Event.RUN_POD_SANDBOX, Event.STOP_POD_SANDBOX),
        "RunPodSandbox": lambda _: "unimplemented",
    }
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            await live(runtime)

        assert runtime.calls_to("10-py")[2:] == [
            "RunPodSandbox",
            "StateChange(RUN_POD_SANDBOX)",
            "StateChange(STOP_POD_SANDBOX)",
        ]


async def test_plugins_are_asked_by_index_and_see_their_predecessors_work(
    tmp_path: Path,
) -> None:
    seen: list[tuple[str, Sequence[str]]] = []

    def set_variable(name: str) -> Answer:
        def answer(request: Message) -> Message:
            assert isinstance(request, nri_pb2.CreateContainerRequest)
            seen.append((name, list(request.container.env)))
            variable = nri_pb2.KeyValue(key=name, value="1")
            adjust = nri_pb2.ContainerAdjustment(env=[variable])
            return nri_pb2.CreateContainerResponse(adjust=adjust)

        return answer

    async with Runtime(tmp_path) as runtime:
        with ExitStack() as peers:
            for index in ("20", "99", "00"):
                answers = {"CreateContainer": set_variable(f"V{index}")}
                path = runtime.socket_path
                peers.enter_context(Peer.connect(path, "p", index, answers))
                await runtime.synchronized(f"{index}-p")
            pod = await runtime.run_pod(Pod())
            created = await runtime.create_container(pod.id, Container(env=("A=0",)))

        assert seen == [
            ("V00", ["A=0"]),
            ("V20", ["A=0", "V00=1"]),
            ("V99", ["A=0", "V00=1", "V20=1"]),
        ]
        assert created.container.env == ("A=0", "V00=1", "V20=1", "V99=1")


async def test_a_conflict_fails_the_creation_and_is_undone(tmp_path: Path) -> None:
    def adjust(_: Message) -> Message:
        args = nri_pb2.ContainerAdjustment(args=["sh"])
        return nri_pb2.CreateContainerResponse(adjust=args)

    async with Runtime(tmp_path) as runtime:
        path, answers = runtime.socket_path, {"CreateContainer": adjust}
        with (
            Peer.connect(path, "a", "10", answers),
            Peer.connect(path, "b", "20", answers),
        ):
            await runtime.synchronized("10-a")
            await runtime.synchronized("20-b")
            pod = await runtime.run_pod(Pod())
            with pytest.raises(FieldConflict):
                await runtime.create_container(pod.id, Container())

        assert runtime.containers == ()
        for plugin in ("10-a", "20-b"):
            assert runtime.calls_to(plugin)[3:] == [
                "CreateContainer",
                "StopContainer",
                "RemoveContainer",
            ]


async def test_an_error_fails_the_request_and_the_plugin_stays(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        answers: dict[str, Answer] = {"RunPodSandbox": lambda _: "no room"}
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            with pytest.raises(PluginRefused) as refusal:
                await runtime.run_pod(Pod())

            assert refusal.value.message == "no room"
            assert runtime.plugins == ("10-py",)
            assert runtime.pods == ()


async def test_a_validator_sees_the_merged_adjustment_and_can_reject_it(
    tmp_path: Path,
) -> None:
    requests: list[Message] = []

    def reject(request: Message) -> Message:
        requests.append(request)
        return nri_pb2.ValidateContainerAdjustmentResponse(reject=True, reason="no")

    def adjust(_: Message) -> Message:
        args = nri_pb2.ContainerAdjustment(args=["sh"])
        return nri_pb2.CreateContainerResponse(adjust=args)

    answers: dict[str, Answer] = {
        "CreateContainer": adjust,
        "ValidateContainerAdjustment": reject,
    }
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            with pytest.raises(AdjustmentRejected) as refusal:
                await runtime.create_container(pod.id, Container())

    assert str(refusal.value) == (
        'validator "10-py" rejected container adjustment, reason: no'
    )
    (request,) = requests
    assert isinstance(request, nri_pb2.ValidateContainerAdjustmentRequest)
    assert not request.container.args
    assert request.adjust == nri_pb2.ContainerAdjustment(args=["sh"])
    assert request.plugins == [nri_pb2.PluginInstance(name="py", index="10")]
    assert request.owners.owners["ctr0"].simple == {nri_pb2.Args: "10-py"}
