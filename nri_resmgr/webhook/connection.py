"""One client of the webhook: requests of HTTP/1.1 on a connection that stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeAlias

import h11
import msgspec

from nri_resmgr.log import Logger
from nri_resmgr.values import InputError
from nri_resmgr.values.printable import printable

log = Logger(__name__)

_PIECE: Final = 64 << 10  # bytes
_HEAD: Final = 16 << 10  # bytes of a request's line and headers
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"

Posts: TypeAlias = Callable[[str, bytes], bytes | None]
"""Answers a POST to a path; returns None for a path that there is not.

An `InputError` is answered with 400.
"""


class Limits(msgspec.Struct, frozen=True):
    """Limits of clients.

    Attributes:
        body: Bytes of a request. An API server takes 3 MiB for an object, and sends an
            update with the object before it.
        bodies: Bytes of all requests that are being received.
        connections: Connections at the same time; the one that has been idle for
            longest makes room for a further one.
        arrival: Seconds for a request to arrive, and for its answer to be read.
        idle: Seconds between two requests. API servers close connections after 90 s:
            a request must not meet a connection that is being closed.
    """

    body: int = 8 << 20
    bodies: int = 32 << 20
    connections: int = 64
    arrival: float = 10.0
    idle: float = 180.0


class Budget:
    """Bytes of requests that are being received."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, size: int) -> bool:
        """Take bytes, if there are enough."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def give(self, size: int) -> None:
        """Return bytes."""
        self._left += size


class _Refused(Exception):
    """A request is answered with an error, and the connection closed."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Connection:
    """Serves one client.

    Args:
        streams: From the client, and to it.
        post: Answers requests.
        limits: The limits.
        budget: Of all connections.

    Attributes:
        idle_since: Since when no request is being served, by the event loop's clock;
            None while one is.
        is_ending: Whether the connection is closed after the request being served.
    """

    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        post: Posts,
        limits: Limits,
        budget: Budget,
    ) -> None:
        self.idle_since: float | None = asyncio.get_running_loop().time()
        self.is_ending = False
        self._reader, self._writer = streams
        self._post = post
        self._limits = limits
        self._budget = budget
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)

    async def serve(self) -> None:
        """Serve requests until the client closes the connection, or is too slow."""
        try:
            while not self.is_ending and await self._serve_one():
                self._http.start_next_cycle()
        except (OSError, TimeoutError, h11.ProtocolError) as error:
            # For debug only: any client can disconnect as often as it likes.
            log.debug("webhook.dropped", why=str(error) or type(error).__name__)

    async def _serve_one(self) -> bool:
        """Serve one request; return whether another one may follow."""
        self.idle_since = asyncio.get_running_loop().time()
        # The first bytes may come late, the others not.
        async with asyncio.timeout(self._limits.idle):
            if self._http.trailing_data[0] == b"" and not await self._receive():
                return False
        self.idle_since = None
        taken = 0
        try:
            async with asyncio.timeout(self._limits.arrival):
                request = await self._next()
                if not isinstance(request, h11.Request):
                    return False
                taken = self._admit(request)
                body = await self._body(taken)
            status, kind, content = self._answer(request, body)
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            kind, content = _TEXT, f"{error}\n".encode()
        except _Refused as error:
            status, kind, content = error.status, _TEXT, f"{error.why}\n".encode()
        finally:
            self._budget.give(taken)
        await self._send(status, kind, content)
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def _admit(self, request: h11.Request) -> int:
        """Return the bytes that the body takes."""
        headers = dict(request.headers)  # h11 has checked them; names are lower case
        size = int(headers.get(b"content-length", b"0"))
        # No API server sends a body in chunks, whose length is not known before.
        if b"transfer-encoding" in headers:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a body needs a Content-Length")
        if size > self._limits.body:
            why = f"the body exceeds {self._limits.body} bytes"
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        if not self._budget.take(size):
            why = "too many large requests at a time"
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, why)
        return size

    async def _body(self, size: int) -> bytes:
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await self._write(self._http.send(go_on) or b"")
        pieces: list[bytes] = []
        while isinstance(event := await self._next(), h11.Data):
            pieces.append(bytes(event.data))
        if not isinstance(event, h11.EndOfMessage):
            raise ConnectionAbortedError(f"{size} bytes were announced")
        return b"".join(pieces)

    def _answer(
        self, request: h11.Request, body: bytes
    ) -> tuple[HTTPStatus, str, bytes]:
        if request.method != b"POST":
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "only POST")
        path = request.target.partition(b"?")[0].decode("ascii", "replace")
        try:
            answer = self._post(path, body)
        except InputError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, printable(str(error))) from None
        except Exception as error:
            # A mistake of ours costs this answer: the API server allows the object.
            why = f"{type(error).__name__}: {error}"
            log.error("webhook.failed", path=path, why=why, exc_info=error)
            why = "internal error; see the log"
            raise _Refused(HTTPStatus.INTERNAL_SERVER_ERROR, why) from None
        if answer is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "no such path")
        return HTTPStatus.OK, _JSON, answer

    async def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return  # h11 is in a state in which nothing can be sent
        is_last = self.is_ending or status is not HTTPStatus.OK
        headers = [
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            ("X-Content-Type-Options", "nosniff"),
            *([("Connection", "close")] if is_last else []),
        ]
        head = h11.Response(
            status_code=status, reason=status.phrase.encode(), headers=headers
        )
        pieces = [
            self._http.send(head),
            self._http.send(h11.Data(data=content)),
            self._http.send(h11.EndOfMessage()),
        ]
        await self._write(b"".join(one or b"" for one in pieces))

    async def _next(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            await self._receive()

    async def _receive(self) -> bool:
        """Receive some bytes; return whether it was not the end."""
        data = await self._reader.read(_PIECE)
        self._http.receive_data(data)
        return bool(data)

    async def _write(self, data: bytes) -> None:
        async with asyncio.timeout(self._limits.arrival):
            self._writer.write(data)
            await self._writer.drain()
