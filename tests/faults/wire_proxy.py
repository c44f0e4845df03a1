"""A socket between plugin and runtime that does harm to one frame of a connection."""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from nri_proto.mux import HEADER

DELAY: Final = 0.25  # seconds
GARBAGE: Final = bytes(range(0x60, 0xA0))


class Harm(enum.Enum):
    """The kinds of harm to a frame."""

    EOF = "both sides see the end in place of it"
    CUT = "half of it comes, then the end"
    SILENCE = "it does not come, and nothing after it, either way"
    DELAY = "it comes late"
    GARBAGE = "64 bytes that mean nothing come in place of it"


class Side(enum.Enum):
    """The sender of a frame."""

    PLUGIN = "the plugin's"
    RUNTIME = "the runtime's"


@attrs.frozen
class Fault:
    """Harm done to one frame.

    Attributes:
        side: The sender of the counted frames.
        at: Which frame, from 0.
        harm: What is done to it.
    """

    side: Side
    at: int
    harm: Harm


class _Ended(Exception):
    """`Proxy.hang_up` was called."""


class Proxy:
    """Forwards one connection at a time.

    Attributes:
        path: Where the plugin connects to.
        faults: One for each of the next connections; later ones are not harmed.
        done: What was done so far.
        connections: How many there were.

    Args:
        folder: For the socket.
        target: The runtime's.
    """

    def __init__(self, folder: Path, target: Path) -> None:
        self.path = folder / "proxy.sock"
        self.faults: deque[Fault] = deque()
        self.done: list[Fault] = []
        self.connections = 0
        self._target = target
        self._hang_up = asyncio.Event()

    async def serve(self) -> None:
        """Accept until cancelled."""
        server = await asyncio.start_unix_server(self._forward, self.path)
        async with server:
            await server.serve_forever()

    def hang_up(self) -> None:
        """End the present connection."""
        self._hang_up.set()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        hang_up = self._hang_up = asyncio.Event()
        fault = self.faults.popleft() if self.faults else None
        try:
            there, back = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.close()
            return
        ways = [
            asyncio.create_task(self._way(Side.PLUGIN, reader, back, fault)),
            asyncio.create_task(self._way(Side.RUNTIME, there, writer, fault)),
            asyncio.create_task(hang_up.wait()),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
        for end in (writer, back):
            end.close()

    async def _way(
        self,
        side: Side,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        fault: Fault | None,
    ) -> None:
        at = -1
        with suppress(ConnectionError, asyncio.IncompleteReadError, _Ended):
            async for frame in _frames(reader):
                at += 1
                if fault and (fault.side, fault.at) == (side, at):
                    self.done.append(fault)
                    writer.write(await self._harm(fault.harm, frame, writer))
                else:
                    writer.write(frame)
                await writer.drain()

    async def _harm(
        self, harm: Harm, frame: bytes, writer: asyncio.StreamWriter
    ) -> bytes:
        match harm:
            case Harm.DELAY:
                await asyncio.sleep(DELAY)
                return frame
            case Harm.GARBAGE:
                return GARBAGE
            case Harm.SILENCE:
                await self._hang_up.wait()
            case Harm.CUT:
                writer.write(frame[: len(frame) // 2])
                await writer.drain()
        raise _Ended


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        head = await reader.readexactly(HEADER.size)
        _, length = HEADER.unpack(head)
        yield head + await reader.readexactly(length)
