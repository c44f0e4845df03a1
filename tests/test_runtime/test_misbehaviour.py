"""A runtime misbehaves as a test requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import (
    EMPTY_FRAME,
    UNKNOWN_CONNECTION_FRAME,
    UNKNOWN_FRAME_TYPE,
    Misbehaviour,
    Runtime,
    SessionStep,
)
from tests.test_runtime.peer import Peer

# What a plugin has got when the runtime stops at each step: requests, and
# whether RegisterPlugin was answered.
UNTIL = [
    pytest.param(SessionStep.CONNECTED, [], 0, id="connected"),
    pytest.param(SessionStep.REGISTERING, [], 0, id="RegisterPlugin came"),
    pytest.param(SessionStep.REGISTERED, ["ConfigureRequest"], 1, id="it was answered"),
    pytest.param(SessionStep.CONFIGURED, ["ConfigureRequest"], 1, id="configured"),
    pytest.param(
        SessionStep.SYNCHRONIZING,
        ["ConfigureRequest", "SynchronizeRequest"],
        1,
        id="Synchronize was sent",
    ),
    pytest.param(
        SessionStep.SYNCHRONIZED,
        ["ConfigureRequest", "SynchronizeRequest"],
        1,
        id="it was answered too",
    ),
]


@pytest.mark.parametrize(("step", "requests", "replies"), UNTIL)
async def test_the_runtime_hangs_up_at_the_chosen_step(
    step: SessionStep, requests: list[str], replies: int, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(hang_up=step))
        with Peer.connect(runtime.socket_path) as peer:
            await peer.wait_disconnected()

        assert peer.calls() == requests
        assert len(peer.replies) == replies
        assert [str(error) for error in runtime.dropped] == ["ttrpc: closed"]
        with Peer.connect(runtime.socket_path):
            await runtime.synchronized("10-py")  # only the first was treated so


@pytest.mark.parametrize(("step", "requests", "replies"), UNTIL)
async def test_the_runtime_falls_silent_at_the_chosen_step(
    step: SessionStep, requests: list[str], replies: int, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(fall_silent=step))
        path = runtime.socket_path
        with Peer.connect(path) as ignored, Peer.connect(path, "next", "20"):
            await runtime.synchronized("20-next")
            await ignored.wait_replies(replies)
            await ignored.wait_requests(len(requests))

            assert ignored.is_connected
            assert runtime.plugins == ("20-next",)
            assert ignored.calls() == requests
            assert len(ignored.replies) == replies


@pytest.mark.parametrize(
    ("step", "requests", "replies"),
    [
        pytest.param(SessionStep.REGISTERED, [], 1, id="before Configure"),
        pytest.param(
            SessionStep.CONFIGURING, ["ConfigureRequest"], 1, id="after Configure"
        ),
    ],
)
async def test_the_runtime_hangs_up_around_configure_having_answered_first(
    step: SessionStep, requests: list[str], replies: int, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(reply_first=True, hang_up=step))
        with Peer.connect(runtime.socket_path) as peer:
            await peer.wait_disconnected()

    assert peer.calls() == requests
    assert len(peer.replies) == replies


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Misbehaviour(reply_first=True), id="another order"),
        pytest.param(Misbehaviour(bytes_per_write=1), id="byte by byte"),
        pytest.param(Misbehaviour(noise=EMPTY_FRAME * 3), id="empty frames"),
        pytest.param(
            Misbehaviour(noise=UNKNOWN_CONNECTION_FRAME), id="an unknown connection"
        ),
        pytest.param(Misbehaviour(noise=UNKNOWN_FRAME_TYPE), id="an unknown type"),
        pytest.param(Misbehaviour(timeout=-1.5), id="a deadline in the past"),
    ],
)
async def test_a_plugin_gets_the_chosen_misbehaviour(
    wrong: Misbehaviour, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(wrong)
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())

        assert peer.calls() == [
            "ConfigureRequest",
            "SynchronizeRequest",
            "RunPodSandboxRequest",
            "CreateContainerRequest",
            "ValidateContainerAdjustmentRequest",
            "PostCreateContainerRequest",
        ]
        assert wrong.noise in peer.received
        assert runtime.dropped == ()


@pytest.mark.parametrize(
    ("reply_first", "first"),
    [
        pytest.param(False, "00000001", id="Configure first, as in Go"),
        pytest.param(True, "00000002", id="the reply first"),
    ],
)
async def test_the_order_of_configure_and_the_reply(
    *, reply_first: bool, first: str, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(reply_first=reply_first))
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")

    assert peer.received[:4] == bytes.fromhex(first)


async def test_a_plugin_can_be_called_outside_of_all_rules(tmp_path: Path) -> None:
    async with Runtime(tmp_path, NriLevel(0, 10)) as runtime:
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")
            unknown = nri_pb2.StateChangeEvent.FromString(b"\x08\x63")  # event 99
            await runtime.call("10-py", "StateChange", unknown)
            await runtime.call("10-py", "Shutdown", nri_pb2.Empty())
            runtime.write("10-py", UNKNOWN_CONNECTION_FRAME)
            await runtime.call("10-py", "Shutdown", nri_pb2.Empty())

        assert UNKNOWN_CONNECTION_FRAME in peer.received
        assert runtime.calls_to("10-py")[2:] == [
            "StateChange(99)",
            "Shutdown",
            "Shutdown",
        ]


def test_silence_after_the_handshake_is_no_misbehaviour() -> None:
    with pytest.raises(ValueError, match="make no requests instead"):
        Misbehaviour(fall_silent=SessionStep.EVENT)
