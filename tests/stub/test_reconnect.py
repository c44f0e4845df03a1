"""Sessions end and begin again, or end the plugin."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from nri_proto import nri_pb2
from nri_resmgr.stub import (
    Configuration,
    ConnectionLost,
    Container,
    ContainerAdjustment,
    Overrun,
    Pod,
    SocketUnusable,
    Stub,
    StubOptions,
)
from nri_resmgr.stub.stub import Backoff
from nri_resmgr.testing import (
    EMPTY_FRAME,
    UNKNOWN_CONNECTION_FRAME,
    UNKNOWN_FRAME_TYPE,
    Misbehaviour,
    Runtime,
    RuntimeOptions,
)
from tests.stub.live import (
    NAME,
    launched_stub_at,
    live,
    plugged,
    recording,
    running,
    scripted,
    stub_at,
)
from tests.waiting import until

pytestmark = pytest.mark.slow  # waits for real pauses


async def test_a_restarted_runtime_gets_the_whole_handshake(tmp_path: Path) -> None:
    heard: list[str] = []
    plugin = recording(heard, "configure", "synchronize", "stop_container")
    async with plugged(tmp_path, plugin) as (runtime, stub):
        inode = runtime.socket_path.stat().st_ino
        (tmp_path / "kept").hardlink_to(runtime.socket_path)  # so is its number
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized(NAME)
        await stub.synchronized()
        await stub.update_containers([])

        assert runtime.socket_path.stat().st_ino != inode
        assert heard == ["configure", "synchronize"] * 2
        assert runtime.plugins == (NAME,)


async def test_after_an_internal_error_a_later_session_is_followed_by_another_one(
    tmp_path: Path,
) -> None:
    heard: list[str] = []
    plugin = recording(heard, "synchronize", "stop_container")

    @plugin.handler
    def configure(_: Configuration) -> None:
        heard.append("configure")
        if heard.count("configure") == 2:
            raise MemoryError

    async with plugged(tmp_path, plugin) as (runtime, _):
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized(NAME)

        assert heard == ["configure", "synchronize", "configure", *heard[:2]]


async def test_restarts_may_come_again_and_again(tmp_path: Path) -> None:
    heard: list[str] = []
    plugin = recording(heard, "synchronize", "stop_container")
    async with plugged(tmp_path, plugin) as (runtime, _):
        start = time.monotonic()
        for _number in range(6):
            await runtime.stop()
            await runtime.start()
            await runtime.synchronized(NAME)
        taken = time.monotonic() - start

    assert heard == ["synchronize"] * 7
    assert taken < 3  # each pause is the first again; doubled they are 3 s at least


@pytest.mark.parametrize("leaves_file", [False, True], ids=["no file", "a dead file"])
async def test_an_absent_runtime_is_waited_for_once_it_was_there(
    leaves_file: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    async with plugged(tmp_path, recording([], "stop_container")) as (runtime, stub):
        await runtime.stop()
        if not leaves_file:
            runtime.socket_path.unlink()
        await asyncio.sleep(0.3)  # several attempts
        with pytest.raises(ConnectionLost):
            await stub.update_containers([])
        await runtime.start()
        await runtime.synchronized(NAME)

        assert runtime.plugins == (NAME,)


async def test_a_runtime_that_never_was_is_waited_for_on_request(
    tmp_path: Path,
) -> None:
    runtime = Runtime(tmp_path)
    options = StubOptions(waits_for_runtime=True)
    stub = stub_at(runtime, recording([], "stop_container"), options)
    async with running(stub):
        await asyncio.wait_for(stub.begun(), 5)
        with pytest.raises(ConnectionLost):
            await stub.update_containers([])
        await runtime.start()
        await asyncio.wait_for(stub.synchronized(), 30)
        await asyncio.wait_for(stub.begun(), 5)
    await runtime.stop()


@pytest.mark.parametrize(
    ("leaves_file", "why"), [(False, "no such file"), (True, "connection refused")]
)
async def test_a_runtime_that_never_was_is_reported_at_once(
    leaves_file: bool,  # noqa: FBT001 - a parameter of the table
    why: str,
    tmp_path: Path,
) -> None:
    runtime = Runtime(tmp_path)
    if leaves_file:
        await runtime.start()
        await runtime.stop()
    stub = stub_at(runtime, recording([], "stop_container"))
    with pytest.raises(SocketUnusable, match=why):
        await asyncio.wait_for(stub.run(), 5)
    with pytest.raises(ConnectionLost):
        await stub.started()
    with pytest.raises(ConnectionLost):
        await stub.begun()
    with pytest.raises(ConnectionLost):
        await stub.synchronized()
    await stub.closed()


def test_pauses_grow_from_100_ms_to_30_s_with_jitter() -> None:
    backoff = Backoff()
    was_fresh = backoff.is_fresh
    pauses = [backoff.next() for _ in range(12)]
    limits = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30]
    backoff.reset()
    again = backoff.next()

    assert (was_fresh, backoff.is_fresh) == (True, False)
    assert all(
        limit / 2 <= pause <= limit
        for pause, limit in zip([*pauses, again], [*limits, 0.1], strict=True)
    )
    assert len({pause / limit for pause, limit in zip(pauses, limits, strict=True)}) > 9


async def test_a_launched_plugin_ends_with_its_connection(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        stub = launched_stub_at(runtime, recording([], "stop_container"))
        run = asyncio.create_task(stub.run())
        await runtime.synchronized(NAME)
        await runtime.stop()

        await asyncio.wait_for(run, 5)
        await stub.closed()


TRUNK_FRAME_OF_4_GIB = bytes.fromhex("00000001 ffffffff")


async def test_garbage_ends_the_session_and_a_new_one_begins(tmp_path: Path) -> None:
    heard: list[str] = []
    plugin = recording(heard, "synchronize", "stop_container")
    async with plugged(tmp_path, plugin) as (runtime, _):
        runtime.write(NAME, TRUNK_FRAME_OF_4_GIB)
        await runtime.gone(NAME)
        await until(lambda: len(heard) == 2)


async def test_garbage_instead_of_a_handshake_does_not_end_the_plugin(
    tmp_path: Path,
) -> None:
    connections = 0

    async def babble(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal connections
        connections += 1
        writer.write(bytes(range(256)) * 40)
        await reader.read()
        writer.close()

    path = tmp_path / "nri.sock"
    async with scripted(path, babble):
        stub = stub_at(path, recording([], "stop_container"))
        async with running(stub) as run:
            await asyncio.sleep(0.1)
            assert not run.done()
    assert connections >= 1


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Misbehaviour(bytes_per_write=1), id="byte by byte"),
        pytest.param(Misbehaviour(noise=EMPTY_FRAME), id="empty frames"),
        pytest.param(
            Misbehaviour(noise=UNKNOWN_CONNECTION_FRAME), id="an unknown connection"
        ),
        pytest.param(Misbehaviour(noise=UNKNOWN_FRAME_TYPE), id="unknown types"),
        pytest.param(
            Misbehaviour(
                bytes_per_write=3,
                noise=UNKNOWN_FRAME_TYPE + EMPTY_FRAME + UNKNOWN_CONNECTION_FRAME,
            ),
            id="all of it in pieces",
        ),
    ],
)
async def test_unusual_but_legal_messages_do_no_harm(
    wrong: Misbehaviour, tmp_path: Path
) -> None:
    heard: list[str] = []
    plugin = recording(heard, "configure", "synchronize", "run_pod_sandbox")
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(wrong)
        async with live(runtime, plugin):
            await runtime.run_pod(Pod())

            assert heard == ["configure", "synchronize", "run_pod_sandbox"]


class _Busy:
    """Is in the middle of a request until a test lets it go on."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.size = 1

    async def create_container(self, _: Pod, __: Container) -> ContainerAdjustment:
        self.begun.set()
        await self.may_end.wait()
        return ContainerAdjustment().set_env("A", "x" * self.size)


@pytest.mark.parametrize("size", [1, 3 << 20], ids=["small", "3 MiB"])
async def test_stop_lets_a_handler_finish_and_its_answer_out(
    size: int, tmp_path: Path
) -> None:
    plugin = _Busy()
    plugin.size = size
    async with Runtime(tmp_path) as runtime:
        stub = stub_at(runtime, plugin)
        run = asyncio.create_task(stub.run())
        await runtime.synchronized(NAME)
        pod = await runtime.run_pod(Pod())
        creating = asyncio.create_task(runtime.create_container(pod.id, Container()))
        await plugin.begun.wait()
        stub.stop()
        await asyncio.sleep(0.02)
        assert not run.done()
        plugin.may_end.set()
        await run
        created = await creating

        assert created.container.env == ("A=" + "x" * size,)
        await runtime.gone(NAME)


async def test_stop_does_not_wait_longer_than_one_request(tmp_path: Path) -> None:
    plugin, options = _Busy(), RuntimeOptions(request_timeout=0.2)
    async with Runtime(tmp_path, options=options) as runtime:
        stub = stub_at(runtime, plugin, StubOptions(overrun=Overrun.LAPSE))
        run = asyncio.create_task(stub.run())
        await runtime.synchronized(NAME)
        asking = asyncio.create_task(
            runtime.call(NAME, "CreateContainer", nri_pb2.CreateContainerRequest())
        )
        await plugin.begun.wait()
        start = time.monotonic()
        stub.stop()
        await run

        assert time.monotonic() - start < 2
        await asyncio.wait({asking})
        assert asking.exception() is not None


async def stopped_in_time(stub: Stub, run: asyncio.Task[None]) -> None:
    stub.stop()
    await asyncio.wait_for(run, 5)
    await stub.closed()


async def test_stop_works_between_sessions(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        stub = stub_at(runtime, recording([], "stop_container"))
        run = asyncio.create_task(stub.run())
        await runtime.synchronized(NAME)
        await runtime.stop()
        await until(lambda: not stub.runtime.name)
        await asyncio.sleep(0.3)
        await stopped_in_time(stub, run)


async def test_stop_works_during_the_handshake(tmp_path: Path) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    path = tmp_path / "nri.sock"
    async with scripted(path, mute):
        stub = stub_at(path, recording([], "stop_container"))
        run = asyncio.create_task(stub.run())
        await asyncio.sleep(0.05)
        await stopped_in_time(stub, run)


async def test_stop_before_run_is_stop(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        stub = stub_at(runtime, recording([], "stop_container"))
        await stopped_in_time(stub, asyncio.create_task(stub.run()))
