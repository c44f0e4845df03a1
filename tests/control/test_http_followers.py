"""Replies without an end: their clients, and when the source is closed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from nri_resmgr.control.http import ClientLimits, HttpReply, Site
from tests.control.http_server import serving


class Source:
    """Yields *pieces*, then waits for ever; knows when it was closed."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = iter(pieces)
        self.closed = asyncio.Event()

    async def __call__(self) -> AsyncIterator[bytes]:
        try:
            for piece in self._pieces:
                yield piece
            await asyncio.get_running_loop().create_future()
        finally:
            self.closed.set()


async def test_a_follower_that_leaves_closes_the_source(tmp_path: Path) -> None:
    source = Source(b"first\n")
    site = Site({("GET", "/"): lambda _: HttpReply(source())})
    async with serving(site, tmp_path / "s") as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await reader.readuntil(b"first\n")
        writer.close()
        async with asyncio.timeout(5):
            await source.closed.wait()


async def test_a_follower_that_does_not_read_is_dropped(tmp_path: Path) -> None:
    source = Source(*(b"x" * 100_000 for _ in range(100)))
    site = Site(
        {("GET", "/"): lambda _: HttpReply(source())}, ClientLimits(seconds=0.1)
    )
    async with serving(site, tmp_path / "s") as path:
        _, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        async with asyncio.timeout(5):
            await source.closed.wait()
        writer.close()


async def test_the_end_of_the_server_is_the_end_of_all_connections(
    tmp_path: Path,
) -> None:
    source = Source(b"first\n")
    site = Site({("GET", "/"): lambda _: HttpReply(source())})
    async with serving(site, tmp_path / "s") as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await reader.readuntil(b"first\n")

    assert source.closed.is_set()
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()
