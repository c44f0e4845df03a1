"""A way to the API server that a test cuts, or that shows another certificate."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from tests.kubernetes.certificates import Certificates, trusting
from tests.kubernetes.control_plane import ControlPlane

_HOST = "127.0.0.1"


@attrs.define(eq=False)
class Front:
    """Forwards connections to an API server; see `front_of`.

    Attributes:
        control_plane: Has the API server.
        port: Where it listens.
    """

    control_plane: ControlPlane
    port: int = 0
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = attrs.field(factory=set)
    _is_terminated: bool = False

    @property
    def url(self) -> str:
        """What a client asks in place of the API server."""
        return f"https://{_HOST}:{self.port}"

    async def listen(self, shown: Certificates | None = None) -> None:
        """Listen, or go on at the same port after `cut`.

        Args:
            shown: The server's certificate that clients see, in place of its own.
        """
        context = None
        if shown is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(shown.server, shown.server_key)
        self._is_terminated = context is not None
        self._server = await asyncio.start_server(
            self._accept, _HOST, self.port, ssl=context
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End all connections, and accept no more."""
        if self._server is not None:
            self._server.close()
        for one in self._connections:
            one.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        authority = self.control_plane.certificates.authority
        onward = trusting(authority) if self._is_terminated else None
        try:
            with contextlib.suppress(OSError):
                there = await asyncio.open_connection(
                    _HOST, self.control_plane.port, ssl=onward
                )
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_copy(reader, there[1]))
                        group.create_task(_copy(there[0], writer))
                finally:
                    there[1].transport.abort()
        finally:
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def front_of(control_plane: ControlPlane) -> AsyncIterator[Front]:
    """Listen before an API server."""
    front = Front(control_plane)
    await front.listen()
    try:
        yield front
    finally:
        await front.cut()
