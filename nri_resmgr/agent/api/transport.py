"""Requests to the API server by httpx2: bounded in time and size, errors of our own."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

import httpx2
import msgspec

from nri_resmgr.agent.api.answers import Answer
from nri_resmgr.agent.api.credentials import Access, Credentials, unverified_context
from nri_resmgr.agent.api.errors import ApiError, TlsFailed, TooLarge, Unreachable
from nri_resmgr.agent.api.queries import ANSWER
from nri_resmgr.version import our_version

_CONNECT: Final = 10.0
_CLOCK: Final = 5.0  # for the server's clock, which is part of a sentence only
_SLACK: Final = 1 << 16  # for errors, whatever the bound of the answer is

NO_ANSWER: Final = "none"
"""Instead of a status, for a request without an answer."""

BROKEN: Final = (httpx2.HTTPError, httpx2.StreamError, OSError, TimeoutError)
"""Errors of a request, or of reading its answer."""

# A peer that has vanished is noticed within a minute, not at a watch's deadline.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000),
)

# These say that a connection broke or had to wait, not what is wrong with TLS.
_HARMLESS: Final = (
    ssl.SSLEOFError,
    ssl.SSLSyscallError,
    ssl.SSLWantReadError,
    ssl.SSLWantWriteError,
    ssl.SSLZeroReturnError,
)

# Of OpenSSL: a certificate that is not yet, or no longer valid.
_DATES: Final = (9, 10)


class Call(msgspec.Struct, frozen=True):
    """A request.

    Attributes:
        path: Of the URL, quoted.
        query: Of the URL.
        verb: As in RBAC rules.
        method: Of HTTP.
        headers: Beside those of the client.
        body: Its content.
        deadline: The seconds for all of it.
        most: The bytes that an answer may have.
    """

    path: str
    query: Mapping[str, str] = {}
    verb: str = "get"
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes = b""
    deadline: float = ANSWER
    most: int = _SLACK


class Opened(msgspec.Struct, frozen=True):
    """A response whose content is still to come.

    Attributes:
        status: Of HTTP.
        headers: In lower case.
        pieces: Its content.
    """

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


class _Pool:
    """Connections that were made with one TLS context."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.users = 0
        self.client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(
                verify=context,
                http2=False,
                limits=httpx2.Limits(max_connections=None, keepalive_expiry=60.0),
                socket_options=_KEEPALIVE,
            ),
            # Neither a proxy, .netrc nor SSL_CERT_FILE of the environment counts.
            trust_env=False,
            follow_redirects=False,
        )


class Transport:
    """Sends requests, with credentials that are current.

    Args:
        access: Where the server is.
        credentials: Those of the access.

    Attributes:
        heard: When the server sent anything last, by the monotonic clock; or None.
        requests: Number of requests by verb and status.
    """

    def __init__(self, access: Access, credentials: Credentials) -> None:
        self._access = access
        self._credentials = credentials
        self._pool: _Pool | None = None
        self.heard: float | None = None
        self.requests: Counter[tuple[str, str]] = Counter()

    @property
    def server(self) -> str:
        """Address of the API server."""
        return self._access.server

    @property
    def credentials(self) -> Credentials:
        """The credentials of all requests."""
        return self._credentials

    async def close(self) -> None:
        """Close all connections that no request uses."""
        if self._pool is not None:
            await self._pool.client.aclose()

    async def send(self, call: Call) -> Answer:
        """Send a request, and read all of the answer.

        Raises:
            ApiError: There was no answer, or a larger one than is allowed.
        """
        with self._errors(call):
            async with asyncio.timeout(call.deadline), self.open(call) as opened:
                return await _read(opened, call)

    async def read(self, opened: Opened, call: Call) -> Answer:
        """Read an answer that is no stream after all; raises what `send` does."""
        with self._errors(call):
            async with asyncio.timeout(ANSWER):
                return await _read(opened, call)

    @asynccontextmanager
    async def open(self, call: Call) -> AsyncIterator[Opened]:
        """Send a request, and return when the answer begins.

        The rest is read by `read`, or piece by piece; `BROKEN` has what the latter can
        raise.

        Raises:
            ApiError: There was no answer.
        """
        try:
            pool, response = await self._start(call)
        except ApiError:
            self.requests[call.verb, NO_ANSWER] += 1
            raise
        self.heard = time.monotonic()
        self.requests[call.verb, str(response.status_code)] += 1
        try:
            yield Opened(
                status=response.status_code,
                headers=response.headers,
                pieces=self._pieces(response),
            )
        finally:
            try:
                await response.aclose()
            finally:
                await self._release(pool)

    async def _pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        async for piece in response.aiter_raw():
            self.heard = time.monotonic()
            yield piece

    async def _start(self, call: Call) -> tuple[_Pool, httpx2.Response]:
        try:
            return await self._try(call)
        except TlsFailed as error:
            if self._credentials.refused():
                return await self._try(call)
            raise await self._with_clocks(error) from error.__cause__

    async def _try(self, call: Call) -> tuple[_Pool, httpx2.Response]:
        pool = await self._current()
        pool.users += 1
        try:
            with self._errors(call):
                async with asyncio.timeout(min(call.deadline, ANSWER)):
                    request = self._request(pool, call)
                    return pool, await pool.client.send(request, stream=True)
        except BaseException:
            await self._release(pool)
            raise

    async def _release(self, pool: _Pool) -> None:
        pool.users -= 1
        if pool is not self._pool and not pool.users:
            await pool.client.aclose()

    def _request(self, pool: _Pool, call: Call) -> httpx2.Request:
        headers = {
            "user-agent": f"nri-resmgr-agent/{our_version()}",
            # Bounds are of bytes that arrive.
            "accept-encoding": "identity",
            "accept": "application/json",
            **call.headers,
        }
        if token := self._credentials.token():
            headers["authorization"] = f"Bearer {token}"
        query = f"?{urlencode(call.query)}" if call.query else ""
        name = self._access.server_name
        return pool.client.build_request(
            call.method,
            f"{self.server}{call.path}{query}",
            headers=headers,
            content=call.body or None,
            timeout=httpx2.Timeout(call.deadline, connect=_CONNECT),
            extensions={"sni_hostname": name} if name else None,
        )

    async def _current(self) -> _Pool:
        """Return connections with the current CA and client certificate."""
        context = self._credentials.context()
        before = self._pool
        if before is not None and before.context is context:
            return before
        self._pool = pool = _Pool(context)
        if before is not None and not before.users:
            await before.client.aclose()
        return pool

    @contextmanager
    def _errors(self, call: Call) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            refused = _tls_error(error)
            if refused is not None:
                raise TlsFailed(self.server, _why_tls(refused)) from refused
            raise Unreachable(self.server, _why_broken(error, call.deadline)) from error

    async def _with_clocks(self, error: TlsFailed) -> TlsFailed:
        cause = error.__cause__
        if (
            isinstance(cause, ssl.SSLCertVerificationError)
            and cause.verify_code in _DATES
        ):
            error.clocks = await self._clocks()
        return error

    async def _clocks(self) -> str:
        """Return both clocks, for a sentence only: the server is not verified."""
        here = datetime.fromtimestamp(time.time(), UTC)
        there = "unknown"
        try:
            async with (
                asyncio.timeout(_CLOCK),
                # Without credentials: anything may be there.
                httpx2.AsyncClient(
                    verify=unverified_context(), trust_env=False
                ) as client,
                client.stream("GET", f"{self.server}/version") as response,
            ):
                there = response.headers.get("date", there)[:40]
        except BROKEN:
            pass
        ours = f"{here:%a, %d %b %Y %H:%M:%S} GMT"
        return f"this machine's clock says {ours}, the server's {there}"


async def _read(opened: Opened, call: Call) -> Answer:
    # An error is not as large as an answer, and must not fail because of a small bound.
    most = max(call.most, _SLACK)
    pieces: list[bytes] = []
    size = 0
    async for piece in opened.pieces:
        size += len(piece)
        if size > most:
            raise TooLarge(f"the answer to {call.method} {call.path}", most)
        pieces.append(piece)
    return Answer(opened.status, b"".join(pieces), opened.headers)


def _why_broken(error: BaseException, deadline: float) -> str:
    if isinstance(error, httpx2.ConnectTimeout):
        return f"no connection within {_CONNECT:g} s"
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return f"none within {deadline:g} s"
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            # asyncio's own text has the address; that of a name that is not found is
            # no errno's.
            number = cause.errno or 0
            return os.strerror(number) if number > 0 else cause.strerror
    return str(error) or type(error).__name__


def _why_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error.verify_message)
    return (error.reason or str(error)).replace("_", " ").lower()


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _HARMLESS):
            return cause
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    # httpcore2 keeps some causes as contexts only.
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
