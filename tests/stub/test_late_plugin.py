"""Plugins that are built while the runtime works on their registration."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from nri_resmgr.stub import (
    BadHandler,
    ConnectionLost,
    Identity,
    LatePlugin,
    OpenSocket,
    RegistrationRefused,
    SocketPath,
    SocketUnusable,
    Stub,
)
from nri_resmgr.testing import Misbehaviour, Runtime, Step
from tests.stub.live import NAME, live, plugged, recording, running, stub_at


class _NoDeviceError(Exception):
    """What a plugin may find out when it is built."""


def _fail() -> object:
    raise _NoDeviceError


async def test_it_is_built_when_the_request_to_register_is_out() -> None:
    ours, theirs = socket.socketpair()
    found: list[bytes] = []

    def build() -> object:
        found.append(theirs.recv(1 << 16, socket.MSG_DONTWAIT))
        theirs.close()
        return recording([], "stop_container")

    with pytest.raises(ConnectionLost):
        await Stub(LatePlugin(build), Identity.parse(NAME), OpenSocket(ours)).run()

    assert b"RegisterPlugin" in found[0]


@pytest.mark.parametrize(
    "reply_first",
    [
        pytest.param(True, id="where Configure follows the answer"),
        pytest.param(False, id="where Configure overtakes the answer"),
    ],
)
async def test_it_is_built_before_its_first_event(
    reply_first: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    heard: list[str] = []

    def build() -> object:
        heard.append("built")
        return recording(heard, "configure", "synchronize", "stop_container")

    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(reply_first=reply_first))
        async with live(runtime, LatePlugin(build)) as stub:
            await stub.synchronized()

    assert heard == ["built", "configure", "synchronize"]


async def test_it_is_built_once_for_all_sessions(tmp_path: Path) -> None:
    heard: list[str] = []

    def build() -> object:
        heard.append("built")
        return recording(heard, "configure", "stop_container")

    async with plugged(tmp_path, LatePlugin(build)) as (runtime, _):
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized(NAME)

    assert heard == ["built", "configure", "configure"]


async def test_nothing_is_built_where_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(SocketUnusable):
        await stub_at(tmp_path / "nri.sock", LatePlugin(_fail)).run()


@pytest.mark.parametrize(
    ("build", "error"),
    [
        pytest.param(_fail, _NoDeviceError, id="its own error"),
        pytest.param(object, BadHandler, id="a plugin without handlers"),
    ],
)
async def test_what_goes_wrong_ends_the_run_and_the_session(
    build: Callable[[], object], error: type[Exception], tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        with pytest.raises(error):
            await stub_at(runtime, LatePlugin(build)).run()
        await runtime.gone(NAME)

        assert runtime.plugins == ()


@pytest.mark.parametrize(
    "reply_first",
    [
        pytest.param(True, id="where Configure follows the answer"),
        pytest.param(False, id="where Configure overtakes the answer"),
    ],
)
async def test_no_request_is_read_by_what_could_not_be_built(
    reply_first: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    faults: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context))
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(reply_first=reply_first))
        with pytest.raises(_NoDeviceError):
            await stub_at(runtime, LatePlugin(_fail)).run()
        await runtime.gone(NAME)

    assert faults == []


async def test_a_refused_name_is_told_all_the_same(tmp_path: Path) -> None:
    identity = Identity("foo", "10")
    # A name that only the runtime objects to.
    msgspec.structs.force_setattr(identity, "name", "foo,bar")
    late = LatePlugin(lambda: recording([], "stop_container"))
    async with Runtime(tmp_path) as runtime:
        stub = Stub(late, identity, SocketPath(str(runtime.socket_path)))
        with pytest.raises(RegistrationRefused):
            await stub.run()


async def test_one_that_was_too_late_counts_from_its_next_session(
    tmp_path: Path,
) -> None:
    """The runtime has hung up when it is built: its session ends as it begins."""
    heard: list[str] = []
    plugin = LatePlugin(lambda: recording(heard, "configure", "stop_container"))
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(hang_up=Step.CONFIGURING, reply_first=True))
        stub = stub_at(runtime, plugin)
        async with running(stub):
            await asyncio.wait_for(stub.started(), 5)
            await runtime.synchronized(NAME)

    assert heard == ["configure"] * 2
