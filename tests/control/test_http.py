"""The small server between real sockets: what it answers, and what it bounds."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nri_resmgr.control.http import (
    ClientLimits,
    HttpReply,
    HttpRequest,
    RequestRefused,
    Routes,
    Site,
    json_reply,
    text_reply,
)
from nri_resmgr.values import HostError, InputError
from tests.control.http_server import serving

HOST = b"Host: x\r\n\r\n"


class Failing(HostError):
    """The host is at fault."""

    def __str__(self) -> str:
        return "the node is ill"


class Wrong(InputError):
    """The client is at fault."""

    def __str__(self) -> str:
        return "that is no pod"


def echo(request: HttpRequest) -> HttpReply:
    return json_reply(
        {
            "query": dict(request.query),
            "body": request.body.decode(),
            "is": request.path,
        }
    )


async def later(_: HttpRequest) -> HttpReply:
    await asyncio.sleep(0)
    return text_reply("later\n")


def refuse(_: HttpRequest) -> HttpReply:
    raise RequestRefused(409, "not now")


def fail(_: HttpRequest) -> HttpReply:
    raise Failing


def mistake(_: HttpRequest) -> HttpReply:
    raise Wrong


def three(_: HttpRequest) -> HttpReply:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"one\n", b"", b"two\n", b"three\n"):
            yield piece

    return HttpReply(pieces())


ROUTES: Routes = {
    ("GET", "/echo"): echo,
    ("PUT", "/echo"): echo,
    ("GET", "/a b"): echo,
    ("GET", "/later"): later,
    ("GET", "/refuse"): refuse,
    ("GET", "/fail"): fail,
    ("GET", "/mistake"): mistake,
    ("GET", "/three"): three,
}
LIMITS = ClientLimits(head=500, body=100, connections=2, seconds=0.2)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[str]:
    async with serving(Site(ROUTES, LIMITS), tmp_path / "s") as path:
        yield path


async def asked(path: str, request: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    with contextlib.closing(writer):
        writer.write(request)
        async with asyncio.timeout(5):
            return await reader.read()


def parsed(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(
            b"GET /echo?a=1&b=&a=%32 HTTP/1.1\r\n" + HOST,
            (200, '{"query": {"a": "2", "b": ""}, "body": "", "is": "/echo"}\n'),
            id="parameters are decoded, the last one counts",
        ),
        pytest.param(
            b"PUT /echo HTTP/1.1\r\nContent-Length: 3\r\n" + HOST + b"abcd",
            (200, '{"query": {}, "body": "abc", "is": "/echo"}\n'),
            id="a body is as long as it was said to be",
        ),
        pytest.param(
            b"GET /a%20b HTTP/1.0\r\n\r\n",
            (200, '{"query": {}, "body": "", "is": "/a b"}\n'),
            id="a path is decoded, and HTTP 1.0 needs no host",
        ),
        pytest.param(
            b"GET /later HTTP/1.1\r\n" + HOST, (200, "later\n"), id="a handler may wait"
        ),
        pytest.param(
            b"HEAD /later HTTP/1.1\r\n" + HOST, (200, ""), id="HEAD has no body"
        ),
        pytest.param(
            b"HEAD /three HTTP/1.1\r\n" + HOST, (200, ""), id="not even one in pieces"
        ),
        pytest.param(
            b"GET /refuse HTTP/1.1\r\n" + HOST, (409, "not now\n"), id="refused"
        ),
        pytest.param(
            b"GET /fail HTTP/1.1\r\n" + HOST,
            (500, "the node is ill\n"),
            id="the host is at fault",
        ),
        pytest.param(
            b"GET /mistake HTTP/1.1\r\n" + HOST,
            (400, "that is no pod\n"),
            id="the client is at fault",
        ),
        pytest.param(
            b"GET /none HTTP/1.1\r\n" + HOST,
            (404, "no such path: /none\n"),
            id="an unknown path",
        ),
        pytest.param(
            b"DELETE /echo HTTP/1.1\r\n" + HOST,
            (405, "only GET, HEAD, PUT\n"),
            id="an unknown method",
        ),
        pytest.param(
            b"GET /three HTTP/1.0\r\n\r\n",
            (200, "one\ntwo\nthree\n"),
            id="HTTP 1.0 gets pieces without chunks",
        ),
        pytest.param(
            b"GET /three HTTP/1.1\r\n" + HOST,
            (200, "4\r\none\n\r\n4\r\ntwo\n\r\n6\r\nthree\n\r\n0\r\n\r\n"),
            id="pieces go out in chunks",
        ),
        pytest.param(
            b"PUT /echo HTTP/1.1\r\nContent-Length: 101\r\n" + HOST,
            (413, "the body exceeds 100 bytes\n"),
            id="a body that is too long is not read",
        ),
        pytest.param(
            b"GET /echo HTTP/1.1\r\nX: " + b"x" * 2000,
            (431, "the headers are too long\n"),
            id="nor are headers",
        ),
        pytest.param(
            b"\x16\x03\x01 hello\r\n\r\n",
            (400, "not an HTTP/1.1 request\n"),
            id="something else than HTTP",
        ),
    ],
)
async def test_a_request_is_answered(
    server: str, request_: bytes, expected: tuple[int, str]
) -> None:
    assert parsed(await asked(server, request_)) == expected


def connected(path: str) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    return client


async def test_the_client_of_the_standard_library_reads_the_replies(
    server: str,
) -> None:
    def talk() -> tuple[int, str | None, bytes, object]:
        client = http.client.HTTPConnection("x")
        client.sock = connected(server)
        client.request("GET", "/three")
        first = client.getresponse()
        body = first.read()
        client.close()
        client.sock = connected(server)
        client.request("PUT", "/echo", body=b"x")
        answer = client.getresponse()
        data = json.loads(answer.read())
        client.close()
        return first.status, answer.getheader("Content-Type"), body, data["body"]

    found = await asyncio.to_thread(talk)

    assert found == (200, "application/json", b"one\ntwo\nthree\n", "x")


async def test_an_internal_error_is_reported_without_its_data(tmp_path: Path) -> None:
    def broken(_: HttpRequest) -> HttpReply:
        raise ZeroDivisionError("secret")

    async with serving(Site({("GET", "/"): broken}), tmp_path / "s") as path:
        answer = await asked(path, b"GET / HTTP/1.1\r\n" + HOST)

    assert parsed(answer) == (500, "internal error; see the log\n")


async def test_a_client_without_the_right_gets_the_reason(tmp_path: Path) -> None:
    site = Site(
        ROUTES,
        admit=lambda _: "only root may ask",
        refuse=lambda status, why: json_reply({"error": why}, status),
    )
    async with serving(site, tmp_path / "s") as path:
        answer = await asked(path, b"GET /echo HTTP/1.1\r\n" + HOST)

    assert parsed(answer) == (403, '{"error": "only root may ask"}\n')


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /echo HT", id="half a line"),
        pytest.param(
            b"PUT /echo HTTP/1.1\r\nContent-Length: 9\r\n" + HOST + b"abc",
            id="half a body",
        ),
    ],
)
async def test_incomplete_requests_are_dropped(server: str, sent: bytes) -> None:
    with contextlib.suppress(ConnectionResetError):
        assert await asked(server, sent) == b""


async def answered(path: str) -> tuple[int, str]:
    return parsed(await asked(path, b"GET /later HTTP/1.1\r\n" + HOST))


async def test_the_oldest_idle_client_is_disconnected_at_the_limit(server: str) -> None:
    first = await asyncio.open_unix_connection(server)
    second = await asyncio.open_unix_connection(server)
    answer = await answered(server)
    with contextlib.suppress(ConnectionResetError):
        assert await first[0].read() == b""  # before its 0.2 seconds are over
    second[1].write(b"GET /later HTTP/1.1\r\n" + HOST)
    kept = parsed(await second[0].read())

    for _, writer in (first, second):
        writer.close()
    assert answer == kept == (200, "later\n")


async def test_a_client_that_does_not_read_is_disconnected_at_the_limit(
    tmp_path: Path,
) -> None:
    """An idle one that came later keeps its place."""
    limits = ClientLimits(connections=2, seconds=30)
    large = text_reply("x" * (8 << 20))
    routes: Routes = {**ROUTES, ("GET", "/large"): lambda _: large}
    async with serving(Site(routes, limits), tmp_path / "s") as path:
        unread = await asyncio.open_unix_connection(path, limit=1024)
        unread[1].write(b"GET /large HTTP/1.1\r\n" + HOST)
        assert await unread[0].readexactly(12) == b"HTTP/1.1 200"
        idle = await asyncio.open_unix_connection(path)
        first = await answered(path)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await unread[0].readexactly(8 << 20)
        idle[1].write(b"GET /later HTTP/1.1\r\n" + HOST)
        second = parsed(await idle[0].read())
        for _, writer in (unread, idle):
            writer.close()

    assert first == second == (200, "later\n")


async def test_a_client_with_a_running_request_keeps_its_connection(
    tmp_path: Path,
) -> None:
    goes_on = asyncio.Event()

    async def wait(_: HttpRequest) -> HttpReply:
        await goes_on.wait()
        return text_reply("done\n")

    site = Site({**ROUTES, ("GET", "/wait"): wait}, ClientLimits(connections=1))
    async with serving(site, tmp_path / "s") as path:
        working = asyncio.create_task(asked(path, b"GET /wait HTTP/1.1\r\n" + HOST))
        await asyncio.sleep(0.05)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            assert await asked(path, b"GET /later HTTP/1.1\r\n" + HOST) == b""
        goes_on.set()
        answer = parsed(await working)

    assert answer == (200, "done\n")


async def test_a_byte_now_and_then_does_not_extend_the_deadline(server: str) -> None:
    reader, writer = await asyncio.open_unix_connection(server)
    begin = asyncio.get_running_loop().time()
    with contextlib.suppress(OSError):
        async with asyncio.timeout(5):
            while not reader.at_eof():
                writer.write(b"G")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.05)
    took = asyncio.get_running_loop().time() - begin
    writer.close()

    assert 0.15 < took < 4


async def test_streams_beyond_the_limit_are_refused(
    tmp_path: Path,
) -> None:
    closed: list[bool] = []

    async def forever() -> AsyncIterator[bytes]:
        try:
            yield b"first\n"
            await asyncio.get_running_loop().create_future()
        finally:
            closed.append(True)

    routes: Routes = {("GET", "/"): lambda _: HttpReply(forever())}
    limits = ClientLimits(streams=1, connections=2)
    async with serving(Site(routes, limits), tmp_path / "s") as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await reader.readuntil(b"first\n")
        refused = parsed(await asked(path, b"GET / HTTP/1.0\r\n\r\n"))
        writer.close()

    assert refused == (503, "only 1 clients can follow; end one of them\n")
    assert closed == [True]
