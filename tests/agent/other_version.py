"""A real daemon as one of another version would answer: its answers are edited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx2

Json: TypeAlias = dict[str, Any]

Edit: TypeAlias = Callable[[str, Json], Json | None]
"""Returns the answer at a path, or a line of it; None for a path that is not known."""

EVENTS: Final = "/v1/events"

# Without these there is no agent's work at all. Lists have the fields of their items.
_LEAST: Final[Json] = {
    "/v1/agent": {
        "configuration": {"object": {"uid": {}}, "digest": {}, "verdict": {}},
        "adjustments": {"objects": {"object": {"name": {}, "uid": {}}, "verdict": {}}},
    },
    "/v1/state": {"session": {"state": {}}, "policy": {}},
    EVENTS: {"number": {}, "kind": {}, "title": {}},
}
_LATER: Final[Json] = {"later": {"more": [1, "text", None]}}
# Objects whose keys are no names of fields.
_MAPS: Final = ("containers", "errors")


def older(path: str, answer: Json) -> Json | None:
    """Leave out all fields, and paths, that an agent can do without."""
    return _only(answer, _LEAST[path]) if path in _LEAST else None


def later(_path: str, answer: Json) -> Json:
    """Add fields to each object."""
    found: Json = _with_more(answer)
    return found


@asynccontextmanager
async def other_version(daemon: Path, socket: Path, edit: Edit) -> AsyncIterator[None]:
    """Serve on a socket what the daemon at another one answers, edited."""
    transport = httpx2.AsyncHTTPTransport(uds=str(daemon))
    timeout = httpx2.Timeout(30.0, read=None)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://daemon", timeout=timeout
    ) as client:

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            try:
                while True:
                    await _answer(client, edit, reader, writer)
            except (OSError, asyncio.IncompleteReadError, httpx2.HTTPError):
                pass  # the agent or the daemon has gone
            finally:
                writer.close()

        server = await asyncio.start_unix_server(serve, socket)
        try:
            yield
        finally:
            server.close()


async def _answer(
    client: httpx2.AsyncClient,
    edit: Edit,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    body = await reader.readexactly(_length(head))
    method, target, _ = head.split(" ", 2)
    path = target.partition("?")[0]
    if path == EVENTS:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        async with client.stream(method, target) as lines:
            async for line in lines.aiter_lines():
                text = json.dumps(edit(path, json.loads(line))).encode() + b"\n"
                writer.write(b"%x\r\n%b\r\n" % (len(text), text))
                await writer.drain()
        raise ConnectionResetError
    answer = await client.request(method, target, content=body)
    found = edit(path, answer.json())
    status = "200 OK" if found is not None else "404 Not Found"
    text = json.dumps(found or {"why": f"no such path: {path}"}).encode()
    writer.write(
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(text)}\r\n\r\n".encode()
    )
    writer.write(text)
    await writer.drain()


def _length(head: str) -> int:
    for line in head.lower().splitlines():
        name, _, value = line.partition(":")
        if name == "content-length":
            return int(value)
    return 0


def _only(value: Any, least: Json) -> Any:
    if isinstance(value, list):
        return [_only(one, least) for one in value]
    if not isinstance(value, dict) or not least:
        return value
    return {key: _only(value[key], least[key]) for key in least if key in value}


def _with_more(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_more(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {
        key: one if key in _MAPS and isinstance(one, dict) else _with_more(one)
        for key, one in value.items()
    }
    return found | _LATER
