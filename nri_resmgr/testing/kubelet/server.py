"""A server of gRPC services on a unix socket, with the faults of a kubelet."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from grpclib import GRPCError, Status
from grpclib.const import Handler
from grpclib.protocol import H2Protocol
from grpclib.server import Server, Stream

# What grpclib calls for a method; its messages are of any kind.
_Serve = Callable[[Stream[object, object]], Awaitable[None]]


class Service(Protocol):
    """A service as grpclib has it: its handlers by the path of the method."""

    def __mapping__(self) -> Mapping[str, Handler]:
        """Return ``{"/package.Service/Method": handler}``."""
        ...


class _Server(Server):
    def __init__(self, services: Sequence[Service]) -> None:
        super().__init__(services)
        self.protocols: list[H2Protocol] = []

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self.protocols.append(protocol)
        return protocol

    def drop(self) -> None:
        for protocol in self.protocols:
            # Without a connection where the client has not been accepted yet.
            if hasattr(protocol, "connection"):
                protocol.connection.close()
        self.protocols.clear()


class KubeletServer:
    """Serves services at a path, as a kubelet does.

    Args:
        path: Of the socket; its folder is made.
        services: What it serves.

    Attributes:
        path: Of the socket.
        delay: Seconds by which the answer to a call is late; may be set at any time.
        calls: How often each method was called, by its path.
    """

    def __init__(self, path: Path, *services: Service) -> None:
        self.path = path
        self.delay = 0.0
        self.calls: Counter[str] = Counter()
        self._services = services
        self._server: _Server | None = None
        self._failures: dict[str, GRPCError] = {}
        self._times: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._server is not None:
            await self.stop()

    async def start(self) -> None:
        """Serve; the socket has a new inode each time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self._server = _Server([_Faulty(one, self) for one in self._services])
        await self._server.start(path=str(self.path))

    async def stop(self, *, leaves_socket: bool = False) -> None:
        """End all connections and serve no more.

        Args:
            leaves_socket: As a kubelet that was killed.
        """
        server, self._server = self._server, None
        if server is None:
            return
        server.drop()
        if leaves_socket:
            self._close_and_keep_socket(server)
        else:
            server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await server.wait_closed()
        if not leaves_socket:
            self.path.unlink(missing_ok=True)

    def _close_and_keep_socket(self, server: _Server) -> None:
        """Close; since Python 3.13 asyncio would remove the socket that it finds."""
        aside = self.path.with_name(f".{self.path.name}")
        self.path.rename(aside)
        server.close()
        aside.rename(self.path)

    async def restart(self) -> None:
        """End, and serve again at a new inode."""
        await self.stop()
        await self.start()

    def drop_connections(self) -> None:
        """End all connections; the next ones are accepted."""
        if self._server is not None:
            self._server.drop()

    def fail(
        self, method: str, status: Status, message: str = "", *, times: int = -1
    ) -> None:
        """Answer calls of a method by an error.

        Args:
            method: Its path, ``/package.Service/Method``.
            status: The status.
            message: The text beside it.
            times: How many calls; negative for all until `recover`.
        """
        self._failures[method] = GRPCError(status, message)
        self._times[method] = times

    def recover(self) -> None:
        """Answer all calls."""
        self._failures.clear()

    async def before(self, method: str) -> None:
        """Delay or fail a call.

        Raises:
            GRPCError: It has to fail.
        """
        self.calls[method] += 1
        if self.delay:
            await asyncio.sleep(self.delay)
        if (error := self._failures.get(method)) is not None:
            self._times[method] -= 1
            if not self._times[method]:
                del self._failures[method]
            raise error


class _Faulty:
    """A service whose calls pass the faults of a server first."""

    def __init__(self, service: Service, server: KubeletServer) -> None:
        self._service = service
        self._server = server

    def __mapping__(self) -> dict[str, Handler]:
        return {
            method: handler._replace(func=self._with_faults(method, handler.func))
            for method, handler in self._service.__mapping__().items()
        }

    def _with_faults(self, method: str, serve: _Serve) -> _Serve:
        async def called(stream: Stream[object, object]) -> None:
            await self._server.before(method)
            await serve(stream)

        return called
