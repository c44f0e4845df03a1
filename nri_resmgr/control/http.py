"""A small HTTP/1.1 server: one request per connection, with limits on everything."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from asyncio import base_events
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
)
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec

from nri_resmgr.control.http_request import Head, HttpRequest, RequestRefused, read_head
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError, ResmgrError

__all__ = [
    "JSON",
    "JSON_LINES",
    "TEXT",
    "ClientLimits",
    "Handler",
    "HttpReply",
    "HttpRequest",
    "RequestRefused",
    "Routes",
    "Site",
    "json_reply",
    "serve",
    "text_reply",
]

log = Logger(__name__)

# The name that asyncio has for ssl; typeshed does not have it.
_asyncio: Any = base_events
_TLS: Final = _asyncio.ssl

_LINGER: Final = 1.0  # seconds; a client that reads takes less
_HEAD_END: Final = b"\r\n\r\n"

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
JSON_LINES: Final = "application/jsonl"


class HttpReply(msgspec.Struct, frozen=True):
    """A reply.

    Attributes:
        body: The whole body, or an iterator of pieces that are sent at once. The
            iterator is closed when the client disconnects.
        content_type: The media type.
        status: The HTTP status.
        headers: Additional headers.
    """

    body: bytes | AsyncIterator[bytes]
    content_type: str = JSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def json_reply(data: object, status: int = 200) -> HttpReply:
    """Return a reply with *data* as JSON."""
    return HttpReply(json.dumps(data).encode() + b"\n", JSON, status)


def text_reply(text: str, status: int = 200) -> HttpReply:
    """Return a reply with plain text."""
    return HttpReply(text.encode(), TEXT, status)


Handler: TypeAlias = Callable[[HttpRequest], HttpReply | Awaitable[HttpReply]]
Routes: TypeAlias = Mapping[tuple[str, str], Handler]
"""Handlers by method and path. ``GET`` implies ``HEAD``."""


def _refuse_as_text(status: int, why: str) -> HttpReply:
    return text_reply(f"{why}\n", status)


def _admit_all(_: socket.socket) -> str:
    return ""


class ClientLimits(msgspec.Struct, frozen=True):
    """Limits of clients.

    Attributes:
        head: Bytes of the first line and the headers.
        body: Bytes of a request's body.
        connections: Connections at the same time; others are closed.
        seconds: Time for a request to arrive, and for a client to read its reply.
    """

    head: int = 16 << 10
    body: int = 64 << 10
    connections: int = 32
    seconds: float = 10.0


class Site(msgspec.Struct, frozen=True):
    """A set of routes and how to serve them.

    Attributes:
        routes: The handlers.
        limits: The limits of clients.
        admit: Returns why a client is refused; empty to admit it.
        refuse: Makes the reply for a status and a sentence.
    """

    routes: Routes
    limits: ClientLimits = ClientLimits()
    admit: Callable[[socket.socket], str] = _admit_all
    refuse: Callable[[int, str], HttpReply] = _refuse_as_text


async def serve(site: Site, listener: socket.socket) -> None:
    """Serve on *listener* until cancelled; close it and all connections.

    A handler's `RequestRefused` is answered with its status, another `InputError` with
    400, another `ResmgrError` with 500 and its sentence; other errors are logged.

    Args:
        site: The routes.
        listener: A bound TCP or unix socket.
    """
    tasks: set[asyncio.Task[None]] = set()

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Without a reply, which would take what the limit protects.
        if len(tasks) >= site.limits.connections:
            writer.transport.abort()
            return
        task = asyncio.create_task(_Connection(site, reader, writer).serve())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    limit = site.limits.head
    with _without_tls():
        server = await asyncio.start_server(connect, sock=listener, limit=limit)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def _without_tls() -> Iterator[None]:
    """Make asyncio work as in a Python without TLS.

    It would check whether our socket is an SSL socket, and import ssl: 3.5 MiB.
    """
    _asyncio.ssl = None
    try:
        yield
    finally:
        _asyncio.ssl = _TLS


class _Connection:
    def __init__(
        self, site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._site = site
        self._reader = reader
        self._writer = writer

    async def serve(self) -> None:
        """Serve one request; a client that disconnects or is too slow is dropped."""
        try:
            await self._serve()
            self._writer.close()
            async with asyncio.timeout(self._site.limits.seconds):
                await self._writer.wait_closed()  # also of a client that does not read
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        except Exception as error:  # in an iterator: the reply has begun
            log.error("http.failed", exc_info=error)
        finally:
            self._writer.transport.abort()
            # asyncio logs errors of a connection that are never awaited.
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _serve(self) -> None:
        try:
            head = await self._read_head()
            body = await self._read_body(head)
        except RequestRefused as error:
            reply = self._site.refuse(error.status, error.why)
            await self._send(reply, has_body=True, in_chunks=False)
            await self._linger()
        else:
            request = msgspec.structs.replace(head.request, body=body)
            reply = await self._answer(request)
            has_body = request.method != "HEAD"
            await self._send(reply, has_body=has_body, in_chunks=head.knows_chunks)

    async def _read_head(self) -> Head:
        if why := self._site.admit(self._writer.get_extra_info("socket")):
            raise RequestRefused(403, why)
        async with asyncio.timeout(self._site.limits.seconds):
            try:
                return read_head(await self._reader.readuntil(_HEAD_END))
            except asyncio.LimitOverrunError:
                raise RequestRefused(431, "the headers are too long") from None

    async def _read_body(self, head: Head) -> bytes:
        if head.length > self._site.limits.body:
            raise RequestRefused(
                413, f"the body exceeds {self._site.limits.body} bytes"
            )
        async with asyncio.timeout(self._site.limits.seconds):
            return await self._reader.readexactly(head.length)

    async def _answer(self, request: HttpRequest) -> HttpReply:
        try:
            found = self._handler(request)(request)
            return found if isinstance(found, HttpReply) else await found
        except RequestRefused as error:
            return self._site.refuse(error.status, error.why)
        except ResmgrError as error:
            status = 400 if isinstance(error, InputError) else 500
            return self._site.refuse(status, str(error))
        except Exception as error:
            log.error("http.failed", path=request.path, exc_info=error)
            return self._site.refuse(500, "internal error; see the log")

    def _handler(self, request: HttpRequest) -> Handler:
        method = "GET" if request.method == "HEAD" else request.method
        if handler := self._site.routes.get((method, request.path)):
            return handler
        known = {method for method, path in self._site.routes if path == request.path}
        if not known:
            raise RequestRefused(404, f"no such path: {request.path}")
        words = ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))
        refusal = self._site.refuse(405, f"only {words}")
        reply = msgspec.structs.replace(refusal, headers=(("Allow", words),))
        return lambda _: reply

    async def _send(self, reply: HttpReply, *, has_body: bool, in_chunks: bool) -> None:
        body = reply.body
        if isinstance(body, bytes):
            length = ("Content-Length", str(len(body)))
            self._writer.write(
                _head_bytes(reply, (length,)) + (body if has_body else b"")
            )
            await self._drained()
            return
        chunked = ("Transfer-Encoding", "chunked")
        self._writer.write(_head_bytes(reply, (chunked,) if in_chunks else ()))
        try:
            if has_body:
                await self._send_pieces(body, in_chunks=in_chunks)
        finally:
            # Its cleanup must not wait for the garbage collector.
            if isinstance(body, AsyncGenerator):
                await body.aclose()

    async def _send_pieces(
        self, pieces: AsyncIterator[bytes], *, in_chunks: bool
    ) -> None:
        await self._drained()
        disconnected = asyncio.create_task(self._disconnected())
        try:
            while (piece := await self._next(pieces, disconnected)) is not None:
                if piece:  # an empty chunk would mean the end
                    self._writer.write(_chunk(piece) if in_chunks else piece)
                    await self._drained()
            if in_chunks:
                self._writer.write(b"0\r\n\r\n")
                await self._drained()
        finally:
            disconnected.cancel()

    async def _next(
        self, pieces: AsyncIterator[bytes], disconnected: asyncio.Task[None]
    ) -> bytes | None:
        """Return the next piece; None at the end.

        Raises:
            ConnectionError: The client disconnected before the next piece.
        """
        piece = asyncio.ensure_future(anext(pieces, None))
        try:
            await asyncio.wait({piece, disconnected}, return_when="FIRST_COMPLETED")
        finally:
            if not piece.done():
                piece.cancel()
                await asyncio.wait({piece})
        if piece.cancelled():
            raise ConnectionAbortedError("the client disconnected")
        return piece.result()

    async def _disconnected(self) -> None:
        try:
            while await self._reader.read(1 << 10):
                pass  # data after a request is ignored
        except OSError:
            return

    async def _linger(self) -> None:
        """Read what the client still sends, so that it can read why it was refused.

        With unread data, the kernel would reset the connection.
        """
        self._writer.write_eof()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                await self._disconnected()

    async def _drained(self) -> None:
        async with asyncio.timeout(self._site.limits.seconds):
            await self._writer.drain()


def _chunk(piece: bytes) -> bytes:
    """Encode a chunk, which must not be empty: an empty one marks the end."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _head_bytes(reply: HttpReply, more: tuple[tuple[str, str], ...]) -> bytes:
    """Encode the status line and the headers, including *more*."""
    phrase = HTTPStatus(reply.status).phrase
    headers = (
        ("Content-Type", reply.content_type),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Connection", "close"),
        *more,
        *reply.headers,
    )
    text = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {reply.status} {phrase}\r\n{text}\r\n".encode("latin-1")
