"""The server: accepts clients over TLS, with a limit on their number."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from typing import Final

from nri_resmgr.log import Logger
from nri_resmgr.process.endpoint import HttpEndpoint, listen_when_free
from nri_resmgr.webhook.connection import Budget, Connection, Limits, Posts

log = Logger(__name__)

_QUEUE: Final = 256  # clients that may wait to be accepted
_PAUSE: Final = 0.1  # seconds until the next attempt to accept after a failed one
_HANDSHAKE: Final = 5.0  # seconds
_CLOSE: Final = 1.0  # seconds for the end of TLS
_END: Final = 5.0  # seconds for requests that are being served at the end
# The endpoint is made for probes, whose requests are smaller than a review.
_RECEIVED: Final = 128 << 10


class _Client:
    """A client, from its connection to its end.

    Attributes:
        connection: What serves it; None before the end of the handshake.
    """

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self._since = asyncio.get_running_loop().time()

    @property
    def idle_since(self) -> float | None:
        """Since when it is waited for; None while a request is being served."""
        return self.connection.idle_since if self.connection else self._since


class Server:
    """Serves clients until cancelled.

    A client that comes while all places are taken gets that of the client that has been
    waited for longest. Not asyncio's server, which bounds neither clients nor
    handshakes: each takes 256 KiB.

    Args:
        endpoint: Where to listen.
        context: Of TLS.
        post: Answers requests.
        limits: Limits of clients.

    Attributes:
        address: Where it listens; empty before it does.
    """

    def __init__(
        self,
        endpoint: HttpEndpoint,
        context: ssl.SSLContext,
        post: Posts,
        limits: Limits,
    ) -> None:
        self.address = ""
        self._endpoint = endpoint
        self._context = context
        self._post = post
        self._limits = limits
        self._budget = Budget(limits.bodies)
        self._clients: dict[asyncio.Task[None], _Client] = {}

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self._clients)

    async def serve(self) -> None:
        """Listen and serve until cancelled; then finish requests being served."""
        listener, self.address = await listen_when_free(self._endpoint)
        with listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
            listener.setblocking(False)
            listener.listen(_QUEUE)
            log.info("webhook.listening", endpoint=self.address)
            try:
                await self._accept(listener)
            finally:
                listener.close()
                await self._end()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("webhook.not-accepting", why=os.strerror(error.errno or 0))
                self._drop_one()  # its descriptor may be what is missing
                await asyncio.sleep(_PAUSE)
            else:
                self._add(accepted)
                await asyncio.sleep(0)  # sock_accept does not yield while clients wait

    def _add(self, accepted: socket.socket) -> None:
        if self.clients >= self._limits.connections and not self._drop_one():
            accepted.close()
            return
        # asyncio does so only where the protocol of the listener is named. Without it
        # the first answer waits 40 ms for the client to acknowledge the handshake.
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = _Client()
        task = asyncio.create_task(self._serve(client, accepted))
        self._clients[task] = client

        def forget(task: asyncio.Task[None]) -> None:
            self._clients.pop(task, None)
            accepted.close()  # a task that was cancelled before its start has not

        task.add_done_callback(forget)

    async def _serve(self, client: _Client, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE,
                ssl_shutdown_timeout=_CLOSE,
            )
        except OSError as error:
            # For debug only: any client can have that happen.
            log.debug("webhook.no-tls", why=str(error) or type(error).__name__)
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        client.connection = Connection(
            (reader, writer), self._post, self._limits, self._budget
        )
        try:
            await client.connection.serve()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        finally:
            transport.abort()

    def _drop_one(self) -> bool:
        """Drop the client that has been idle for longest; return whether one is."""
        idle = [
            (one.idle_since, task)
            for task, one in self._clients.items()
            if one.idle_since is not None
        ]
        if not idle:
            return False
        _, task = min(idle, key=lambda one: one[0])
        # At once, as the next client comes before the task has ended.
        del self._clients[task]
        task.cancel()
        return True

    async def _end(self) -> None:
        while self._drop_one():
            pass
        for one in self._clients.values():
            if one.connection is not None:
                one.connection.is_ending = True
        if self._clients:
            await asyncio.wait(tuple(self._clients), timeout=_END)
        for task in tuple(self._clients):
            task.cancel()
