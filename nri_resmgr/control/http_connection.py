"""One client of the HTTP server, from its request to the end of its reply."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import Final

import msgspec

from nri_resmgr.app.background.threads import NO_MEMORY
from nri_resmgr.control.http import Handler, HttpReply, Site
from nri_resmgr.control.http_request import Head, HttpRequest, RequestRefused, read_head
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError, ResmgrError

log = Logger(__name__)

_LINGER: Final = 1.0  # seconds; a client that reads takes less
_LINGER_BYTES: Final = 64 << 10  # ends a client that sends on and on
_PIECE: Final = 16 << 10  # bytes
_HEAD_END: Final = b"\r\n\r\n"


class Connection:
    """A connection with one request.

    Attributes:
        waits_since: Since when it has waited for its client, to send a whole request or
            to read a reply, by the clock of the event loop; None while it does not.
        is_ending: Whether it no longer takes a place.

    Args:
        site: The routes.
        streams: Free places for replies in pieces.
    """

    def __init__(self, site: Site, streams: asyncio.Semaphore) -> None:
        self.waits_since: float | None = asyncio.get_running_loop().time()
        self.is_ending = False
        self._site = site
        self._streams = streams
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def serve(self, accepted: socket.socket) -> None:
        """Serve one request; a client that disconnects or is too slow is dropped."""
        limit = self._site.limits.head
        with contextlib.closing(accepted):
            self._reader, self._writer = await asyncio.open_connection(
                sock=accepted, limit=limit
            )
            try:
                await self._serve(accepted)
            except (OSError, asyncio.IncompleteReadError) as error:
                # For debug only: any client can disconnect as often as it likes.
                log.debug("http.dropped", why=str(error) or type(error).__name__)
            except NO_MEMORY:
                # As below: no fault of this program.
                log.error("http.failed", why="out of memory")
            except Exception as error:
                # The reply has begun, so that it can only be cut off.
                why = f"{type(error).__name__}: {error}"
                log.error("http.failed", why=why, exc_info=error)
            finally:
                self.is_ending = True
                self._writer.transport.abort()
                # asyncio logs errors of a connection that are never awaited.
                with contextlib.suppress(OSError):
                    await self._writer.wait_closed()

    async def _serve(self, accepted: socket.socket) -> None:
        try:
            self._admit(accepted)
            # One deadline for all of it: a client that sends a byte now and then is
            # not slower than one that sends nothing.
            async with asyncio.timeout(self._site.limits.seconds):
                head = await self._read_head()
                self._permit(accepted, head.request)
                body = await self._read_body(head)
        except RequestRefused as error:
            reply = self._site.refuse(error.status, error.why)
            await self._send(reply, has_body=True, in_chunks=False, lingers=True)
        else:
            self.waits_since = None
            request = msgspec.structs.replace(head.request, body=body)
            reply = await self._answer(request)
            has_body = request.method != "HEAD"
            await self._send(reply, has_body=has_body, in_chunks=head.knows_chunks)

    def _admit(self, accepted: socket.socket) -> None:
        if why := self._site.admit(accepted):
            raise RequestRefused(403, why)

    def _permit(self, accepted: socket.socket, request: HttpRequest) -> None:
        if why := self._site.permit(accepted, request):
            raise RequestRefused(403, why)

    async def _read_head(self) -> Head:
        try:
            return read_head(await self._reader.readuntil(_HEAD_END))
        except asyncio.LimitOverrunError:
            raise RequestRefused(431, "the headers are too long") from None

    async def _read_body(self, head: Head) -> bytes:
        if head.length > self._site.limits.body:
            raise RequestRefused(
                413, f"the body exceeds {self._site.limits.body} bytes"
            )
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
        except (OSError, *NO_MEMORY) as error:
            # A passing fault of the system, not of this program: no traceback.
            why = str(error) or "out of memory"
            log.error("http.failed", path=request.path, why=why)
            return self._site.refuse(503, why)
        except Exception as error:
            # A mistake of ours costs this reply, not the server.
            why = f"{type(error).__name__}: {error}"
            log.error("http.failed", path=request.path, why=why, exc_info=error)
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

    async def _send(
        self,
        reply: HttpReply,
        *,
        has_body: bool,
        in_chunks: bool,
        lingers: bool = False,
    ) -> None:
        if isinstance(reply.body, bytes):
            content = reply.body if has_body else b""
            await self._send_whole(reply, len(reply.body), content, lingers=lingers)
            return
        # Cleanup of the pieces must not wait for the garbage collector.
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(reply.body, AsyncGenerator):
                stack.push_async_callback(reply.body.aclose)
            if self._streams.locked():
                most = self._site.limits.streams
                why = f"only {most} clients can follow; end one of them"
                refusal = self._site.refuse(503, why)
                await self._send(refusal, has_body=has_body, in_chunks=False)
                return
            async with self._streams:
                await self._send_stream(reply, has_body=has_body, in_chunks=in_chunks)

    async def _send_whole(
        self, reply: HttpReply, length: int, content: bytes, *, lingers: bool
    ) -> None:
        self.waits_since = asyncio.get_running_loop().time()
        async with asyncio.timeout(self._site.limits.seconds):
            headers = (("Content-Length", str(length)),)
            self._writer.write(_head_bytes(reply, headers) + content)
            if lingers:
                await self._linger()
            self._writer.close()
            await self._writer.wait_closed()

    async def _send_stream(
        self, reply: HttpReply, *, has_body: bool, in_chunks: bool
    ) -> None:
        chunked = ("Transfer-Encoding", "chunked")
        self._writer.write(_head_bytes(reply, (chunked,) if in_chunks else ()))
        if has_body and not isinstance(reply.body, bytes):
            await self._send_pieces(reply.body, in_chunks=in_chunks)
        async with asyncio.timeout(self._site.limits.seconds):
            self._writer.close()
            await self._writer.wait_closed()

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
                left = _LINGER_BYTES
                while left > 0 and (data := await self._reader.read(_PIECE)):
                    left -= len(data)

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
