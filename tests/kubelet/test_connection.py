"""Connections to services of the kubelet: each fault has a sentence, and passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpclib import Status

from nri_resmgr.kubelet.bounded_protocol import LARGEST_MESSAGE
from nri_resmgr.kubelet.sockets import kubelet_dir
from nri_resmgr.testing.kubelet.server import KubeletServer
from tests.kubelet.greeting import METHOD, SERVICE, Client, Greeting


@asynccontextmanager
async def running(folder: Path, size: int = 3) -> AsyncIterator[Client]:
    """Run a client."""
    client = Client(folder, size)
    task = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})


def server(folder: Path) -> KubeletServer:
    """Make a server; it does not serve yet."""
    return KubeletServer(folder / SERVICE.socket, Greeting())


async def test_a_socket_that_comes_late_is_used(tmp_path: Path) -> None:
    async with running(tmp_path) as client:
        problem = await client.problem("no such socket")
        assert problem.endswith("greet by hand")

        async with server(tmp_path):
            assert await client.answer() == 3
            assert client.connection.problem == ""


async def test_a_restarted_kubelet_with_a_new_socket_is_found(tmp_path: Path) -> None:
    async with server(tmp_path) as kubelet, running(tmp_path) as client:
        await client.answer()
        inode = kubelet.path.stat().st_ino

        await kubelet.stop(leaves_socket=True)
        await client.problem("the kubelet does not run")
        keeps_inode = kubelet.path.rename(tmp_path / "old")
        await kubelet.start()

        assert keeps_inode.stat().st_ino == inode != kubelet.path.stat().st_ino
        assert await client.answer() == 3


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.FAILED_PRECONDITION, "the kubelet answers FAILED_PRECONDITION: why"),
        (Status.UNIMPLEMENTED, "does not serve test.Greeting; greet by hand"),
    ],
)
async def test_an_error_of_the_kubelet_is_reported_until_it_passes(
    tmp_path: Path, status: Status, said: str
) -> None:
    async with server(tmp_path) as kubelet, running(tmp_path) as client:
        kubelet.fail(METHOD, status, "why")
        await client.problem(said)

        kubelet.recover()

        assert await client.answer() == 3
        assert client.connection.problem == ""


async def test_dropped_connections_are_made_again(tmp_path: Path) -> None:
    async with server(tmp_path) as kubelet, running(tmp_path) as client:
        for _ in range(3):
            kubelet.drop_connections()
            assert await client.answer() == 3


async def test_a_message_above_the_bound_is_not_read(tmp_path: Path) -> None:
    async with server(tmp_path), running(tmp_path, LARGEST_MESSAGE - 100) as client:
        assert await client.answer() == LARGEST_MESSAGE - 100

        client.size = LARGEST_MESSAGE
        await client.problem("above 16 MiB")


@pytest.mark.parametrize(
    "junk",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00" * 4096,
        # SETTINGS, then ALTSVC, an event that grpclib does not know.
        b"\0\0\0\4\0\0\0\0\0" + b"\0\0\7\n\0\0\0\0\0" + b'\0\1aa="b',
        b"\xff" * 100_000,
        b"",
    ],
)
async def test_a_peer_that_is_no_kubelet_is_only_reported(
    tmp_path: Path, junk: bytes
) -> None:
    async def spoil(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(junk)
        writer.close()

    path = tmp_path / SERVICE.socket
    path.parent.mkdir()
    faults: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context))
    other = await asyncio.start_unix_server(spoil, path)
    async with running(tmp_path) as client:
        await client.problem("connection lost")
        other.close()
        path.unlink(missing_ok=True)

        async with server(tmp_path):
            assert await client.answer() == 3
    assert faults == []


def test_the_directory_of_the_kubelet_can_be_none() -> None:
    assert kubelet_dir("none") is kubelet_dir("") is None
    assert kubelet_dir("/var/lib/kubelet") == Path("/var/lib/kubelet")
