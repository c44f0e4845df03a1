"""Plugins that get their first event, and plugins that do not."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import pytest

from nri_proto import CallReply, Code, NriLevel, nri_pb2
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import RecordedMessage, Runtime, RuntimeOptions, Sender
from tests.test_runtime.peer import Answer, Peer

SHORT = RuntimeOptions(registration_timeout=0.2, request_timeout=0.2)


async def test_every_message_is_recorded(tmp_path: Path) -> None:
    async with Runtime(tmp_path, NriLevel(0, 12, 1)) as runtime:
        with Peer.connect(runtime.socket_path):
            await runtime.synchronized("10-py")

        register = nri_pb2.RegisterPluginRequest(plugin_name="py", plugin_idx="10")
        configure = nri_pb2.ConfigureRequest(
            runtime_name="containerd",
            runtime_version="v2.4.0",
            registration_timeout=5000,
            request_timeout=2000,
            NRI_version="v0.12.1",
        )
        synchronize = nri_pb2.SynchronizeRequest()
        assert list(runtime.records) == [
            RecordedMessage("", Sender.PLUGIN, "RegisterPlugin", register),
            RecordedMessage("10-py", Sender.RUNTIME, "Configure", configure),
            RecordedMessage("10-py", Sender.RUNTIME, "RegisterPlugin", nri_pb2.Empty()),
            RecordedMessage(
                "10-py", Sender.PLUGIN, "Configure", nri_pb2.ConfigureResponse()
            ),
            RecordedMessage("10-py", Sender.RUNTIME, "Synchronize", synchronize),
            RecordedMessage(
                "10-py", Sender.PLUGIN, "Synchronize", nri_pb2.SynchronizeResponse()
            ),
        ]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param(
            NriLevel(0, 6, 1),
            nri_pb2.ConfigureRequest(runtime_name="cri-o", runtime_version="1.31.0"),
            id="0.6 sends no timeouts",
        ),
        pytest.param(
            NriLevel(0, 7),
            nri_pb2.ConfigureRequest(
                runtime_name="cri-o",
                runtime_version="1.31.0",
                registration_timeout=5005,
                request_timeout=2007,
            ),
            id="0.7 sends timeouts",
        ),
        pytest.param(
            NriLevel(0, 12),
            nri_pb2.ConfigureRequest(
                runtime_name="cri-o",
                runtime_version="1.31.0",
                registration_timeout=5005,
                request_timeout=2007,
                NRI_version="v0.12.0",
            ),
            id="0.12 sends its version",
        ),
    ],
)
async def test_configure_has_the_fields_of_the_level(
    level: NriLevel, expected: nri_pb2.ConfigureRequest, tmp_path: Path
) -> None:
    options = RuntimeOptions(registration_timeout=5.005, request_timeout=2.007)
    async with Runtime(tmp_path, level, "cri-o", "1.31.0", options) as runtime:
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")

    assert peer.requests[0] == expected


@pytest.mark.parametrize(
    ("name", "index", "level", "message"),
    [
        pytest.param("", "10", NriLevel(0, 3), "invalid plugin name: ''", id="no name"),
        pytest.param(
            "foo,bar",
            "10",
            NriLevel(0, 12),
            "invalid plugin name: 'foo,bar'",
            id="comma",
        ),
        pytest.param(
            "p", "1", NriLevel(0, 12), "invalid plugin index: '1'", id="one digit"
        ),
        pytest.param(
            "p", "1x", NriLevel(0, 3), "invalid plugin index: '1x'", id="not a digit"
        ),
        pytest.param(
            "p", "123", NriLevel(0, 3), "invalid plugin index: '123'", id="three digits"
        ),
    ],
)
async def test_a_bad_identity_is_refused_and_the_socket_stays_open(
    name: str, index: str, level: NriLevel, message: str, tmp_path: Path
) -> None:
    async with Runtime(tmp_path, level) as runtime:
        path = runtime.socket_path
        with Peer.connect(path, name, index) as bad, Peer.connect(path, "ok", "20"):
            await runtime.synchronized("20-ok")
            await bad.wait_replies(1)

            assert bad.replies == [CallReply(1, Code.UNKNOWN, message)]
            assert bad.is_connected
            assert runtime.plugins == ("20-ok",)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        pytest.param(
            "abcd-0123+EFGH_4567.ijkl", NriLevel(0, 12), id="all that 0.12 has"
        ),
        pytest.param("foo,bar", NriLevel(0, 11), id="anything before"),
    ],
)
async def test_a_good_name_is_accepted(
    name: str, level: NriLevel, tmp_path: Path
) -> None:
    async with Runtime(tmp_path, level) as runtime:
        with Peer.connect(runtime.socket_path, name, "00"):
            await runtime.synchronized(f"00-{name}")


@pytest.mark.parametrize(
    ("level", "known", "unknown"),
    [
        pytest.param(NriLevel(0, 9), 0x7FF, 0x800, id="0.9"),
        pytest.param(NriLevel(0, 9, 1), 0x1FFF, 0x2000, id="0.9.1"),
        pytest.param(NriLevel(0, 10), 0x3FFF, 0x4001, id="0.10"),
    ],
)
async def test_an_event_that_the_level_lacks_ends_the_session(
    level: NriLevel, known: int, unknown: int, tmp_path: Path
) -> None:
    async with Runtime(tmp_path, level) as runtime:
        answers: dict[str, Answer] = {
            "Configure": lambda _: nri_pb2.ConfigureResponse(events=unknown)
        }
        with Peer.connect(runtime.socket_path, answers=answers) as peer:
            await runtime.wait_dropped()
            await peer.wait_disconnected()
        answers = {"Configure": lambda _: nri_pb2.ConfigureResponse(events=known)}
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")

        assert [str(error) for error in runtime.dropped] == [
            f"plugin '10-py': invalid plugin events: 0x{unknown:x}"
        ]


async def test_a_second_registration_is_refused(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")
            peer.register("other", "20")
            await peer.wait_replies(2)

        assert peer.replies[1].message == "plugin is already registered"


async def test_an_unregistered_connection_delays_the_next_and_is_dropped(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path, options=SHORT) as runtime:
        silent = socket.socket(socket.AF_UNIX)
        silent.connect(str(runtime.socket_path))
        start = time.monotonic()
        with Peer.connect(runtime.socket_path), silent:
            await runtime.synchronized("10-py")

        assert time.monotonic() - start >= 0.2
        assert [str(error) for error in runtime.dropped] == [
            "plugin '': plugin registration timed out"
        ]


@pytest.mark.parametrize("method", ["Configure", "Synchronize"])
async def test_a_late_or_failing_handshake_ends_the_session(
    method: str, tmp_path: Path
) -> None:
    async with Runtime(tmp_path, options=SHORT) as runtime:
        for number, answer in enumerate((None, "boom"), start=1):
            answers: dict[str, Answer] = {method: lambda _, say=answer: say}  # type: ignore[misc]  # bound per round
            with Peer.connect(runtime.socket_path, answers=answers) as peer:
                await runtime.wait_dropped(number)
                await peer.wait_disconnected()

        late, failing = map(str, runtime.dropped)
        # Synchronize has what Configure has left of the time.
        assert re.fullmatch(rf"{method} got no answer within 0\.(200|1\d\d) s", late)
        assert failing == f"plugin '10-py' failed {method}: boom"


@pytest.mark.parametrize("answer", ["boom", None], ids=["an error", "silence"])
async def test_before_0_7_a_failed_synchronization_leaves_a_zombie(
    answer: str | None, tmp_path: Path
) -> None:
    async with Runtime(tmp_path, NriLevel(0, 6, 1), options=SHORT) as runtime:
        answers: dict[str, Answer] = {"Synchronize": lambda _: answer}
        with Peer.connect(runtime.socket_path, answers=answers) as peer:
            await runtime.wait_dropped()
            await runtime.run_pod(Pod())
            # Its calls are still served, but it gets no events.
            peer.call("UpdateContainers", nri_pb2.UpdateContainersRequest())
            await peer.wait_replies(2)

            assert peer.calls() == ["ConfigureRequest", "SynchronizeRequest"]


async def test_a_restarted_runtime_reports_surviving_containers(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    await runtime.start()
    pod = await runtime.run_pod(Pod(name="web"))
    running = await runtime.create_container(pod.id, Container(name="app"))
    stopped = await runtime.create_container(pod.id, Container(name="job"))
    await runtime.stop_container(stopped.container.id)
    with Peer.connect(runtime.socket_path) as peer:
        await runtime.synchronized("10-py")
        await runtime.stop()
        await peer.wait_disconnected()
    await runtime.start()
    with Peer.connect(runtime.socket_path) as again:
        await runtime.synchronized("10-py")
        await runtime.stop()

    expected = nri_pb2.SynchronizeRequest(
        pods=runtime.world.pods.values(),
        containers=[runtime.world.containers[running.container.id]],
    )
    assert again.requests[1] == expected


async def test_records_can_be_turned_off(tmp_path: Path) -> None:
    async with Runtime(tmp_path, options=RuntimeOptions(records=False)) as runtime:
        with Peer.connect(runtime.socket_path):
            await runtime.synchronized("10-py")

        assert runtime.records == ()
