"""A small HTTP/1.1 server: a request per connection, bounded in every direction."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from asyncio import base_events
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from nri_resmgr.control.http_reply import (
    JSON,
    JSON_LINES,
    TEXT,
    Reply,
    chunk_of,
    head_of,
    json_reply,
    text_reply,
)
from nri_resmgr.control.http_request import Head, Request, RequestRefused, read_head
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError, ResmgrError

__all__ = [
    "JSON",
    "JSON_LINES",
    "TEXT",
    "Handler",
    "Limits",
    "Reply",
    "Request",
    "RequestRefused",
    "Routes",
    "Site",
    "json_reply",
    "serve",
    "text_reply",
]

log = Logger(__name__)

# What asyncio knows of TLS; its types say nothing of that.
_asyncio: Any = base_events
_TLS: Final = _asyncio.ssl

_LINGERING: Final = 1.0  # seconds; a client that reads is done in less
_HEAD_END: Final = b"\r\n\r\n"


Handler: TypeAlias = Callable[[Request], Reply | Awaitable[Reply]]
Routes: TypeAlias = Mapping[tuple[str, str], Handler]
"""By method and path. Who may ``GET`` may ``HEAD``."""


def _refuse_as_text(status: int, why: str) -> Reply:
    return text_reply(f"{why}\n", status)


def _admit_all(_: socket.socket) -> str:
    return ""


class Limits(msgspec.Struct, frozen=True):
    """What a client may take of us.

    Attributes:
        head: Bytes of the first line and the headers.
        body: Bytes of a request's body.
        connections: At the same time; others are turned away.
        seconds: For a request to arrive whole, and for a client to take what was
            written to it.
    """

    head: int = 16 << 10
    body: int = 64 << 10
    connections: int = 32
    seconds: float = 10.0


class Site(msgspec.Struct, frozen=True):
    """What is served.

    Attributes:
        routes: The handlers.
        limits: What clients may take.
        admit: Says why a client may not ask; nothing where it may.
        refuse: Writes the answer for a status and a sentence.
    """

    routes: Routes
    limits: Limits = Limits()
    admit: Callable[[socket.socket], str] = _admit_all
    refuse: Callable[[int, str], Reply] = _refuse_as_text


async def serve(site: Site, listener: socket.socket) -> None:
    """Answer on *listener* until cancelled; closes it, and all connections.

    A handler's `RequestRefused` is told with its status, another `InputError` as 400,
    another `ResmgrError` as 500 with its sentence; what else it raises is logged.

    Args:
        site: What is served.
        listener: A bound stream socket, of the internet or of unix.
    """
    tasks: set[asyncio.Task[None]] = set()

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
    """Let asyncio be one without TLS, as in a Python that is built without it.

    It would ask whether our socket is one of TLS, and import ssl: 3.5 MiB.
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
        """Read, answer, close; a client that is gone or too slow is dropped."""
        try:
            await self._serve()
            self._writer.close()
            async with asyncio.timeout(self._site.limits.seconds):
                await self._writer.wait_closed()  # who takes nothing more counts, too
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        except Exception as error:  # of an iterator: too late for another answer
            log.error("http.failed", exc_info=error)
        finally:
            self._writer.transport.abort()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()  # asyncio complains of unread errors

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
            raise RequestRefused(413, f"at most {self._site.limits.body} bytes, please")
        async with asyncio.timeout(self._site.limits.seconds):
            return await self._reader.readexactly(head.length)

    async def _answer(self, request: Request) -> Reply:
        try:
            found = self._handler(request)(request)
            return found if isinstance(found, Reply) else await found
        except RequestRefused as error:
            return self._site.refuse(error.status, error.why)
        except ResmgrError as error:
            status = 400 if isinstance(error, InputError) else 500
            return self._site.refuse(status, str(error))
        except Exception as error:
            log.error("http.failed", path=request.path, exc_info=error)
            return self._site.refuse(500, "a fault of ours; the log has more")

    def _handler(self, request: Request) -> Handler:
        method = "GET" if request.method == "HEAD" else request.method
        if handler := self._site.routes.get((method, request.path)):
            return handler
        known = {method for method, path in self._site.routes if path == request.path}
        if not known:
            raise RequestRefused(404, f"nothing is at {request.path}")
        words = ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))
        refusal = self._site.refuse(405, f"only {words}")
        reply = msgspec.structs.replace(refusal, headers=(("Allow", words),))
        return lambda _: reply

    async def _send(self, reply: Reply, *, has_body: bool, in_chunks: bool) -> None:
        body = reply.body
        if isinstance(body, bytes):
            length = ("Content-Length", str(len(body)))
            self._writer.write(head_of(reply, (length,)) + (body if has_body else b""))
            await self._drained()
            return
        chunked = ("Transfer-Encoding", "chunked")
        self._writer.write(head_of(reply, (chunked,) if in_chunks else ()))
        pieces: Any = body
        try:
            if has_body:
                await self._send_pieces(body, in_chunks=in_chunks)
        finally:
            if close := getattr(pieces, "aclose", None):
                await close()

    async def _send_pieces(
        self, pieces: AsyncIterator[bytes], *, in_chunks: bool
    ) -> None:
        await self._drained()
        gone = asyncio.create_task(self._gone())
        try:
            while (piece := await self._next(pieces, gone)) is not None:
                if piece:  # an empty chunk would mean the end
                    self._writer.write(chunk_of(piece) if in_chunks else piece)
                    await self._drained()
            if in_chunks:
                self._writer.write(b"0\r\n\r\n")
                await self._drained()
        finally:
            gone.cancel()

    async def _next(
        self, pieces: AsyncIterator[bytes], gone: asyncio.Task[None]
    ) -> bytes | None:
        """Return the next piece; None at the end.

        Raises:
            ConnectionError: There is none yet, and the client has said its last.
        """
        piece = asyncio.ensure_future(anext(pieces, None))
        try:
            await asyncio.wait({piece, gone}, return_when="FIRST_COMPLETED")
        finally:
            if not piece.done():
                piece.cancel()
                await asyncio.wait({piece})
        if piece.cancelled():
            raise ConnectionAbortedError("the client is gone")
        return piece.result()

    async def _gone(self) -> None:
        try:
            while await self._reader.read(1 << 10):
                pass  # nothing that comes after a request is of interest
        except OSError:
            return

    async def _linger(self) -> None:
        """Take what is still on its way: the kernel resets a connection otherwise.

        Then the client would never read why it was refused.
        """
        self._writer.write_eof()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGERING):
                await self._gone()

    async def _drained(self) -> None:
        async with asyncio.timeout(self._site.limits.seconds):
            await self._writer.drain()
