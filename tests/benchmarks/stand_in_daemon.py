"""A daemon that accepts each document of a spool folder, for agents without a node.

It rejects adjustments with another RDT class than `KNOWN`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final

import yaml

from nri_resmgr.spool import ADJUSTMENTS, CONFIGURATION, decode
from nri_resmgr.values.documents import JsonObject

KNOWN: Final = "gold"
"""The only RDT class."""

# A real one looks each quarter of a second, and takes a while.
_JUDGED: Final = 0.3  # seconds after which a document has a verdict
_BUSY: Final = 5.0  # seconds between two containers that come or go

_STATE: Final[JsonObject] = {
    "daemon": {"version": "0.1.0", "dryRun": False},
    "runtime": {"name": "containerd", "version": "v2.1.0"},
    "session": {"state": "synchronized", "endedWhy": ""},
    "policy": "StaticPolicy",
    "verification": {"containers": {"as-decided": 100}},
}


class StandInDaemon:
    """Answers what an agent asks on a control socket.

    Args:
        spool: The folder of the agent's documents.
        busy: A file: while it exists, containers come and go.
    """

    def __init__(self, spool: Path, busy: Path) -> None:
        self._spool = spool
        self._busy = busy
        self._numbers = count(1)
        self._exclusive = 0
        self._judged: JsonObject | None = None
        self._adjustments: JsonObject | None = None
        self._adjusted = 0  # when the judged ones were handed over, in ns

    @asynccontextmanager
    async def serving(self, path: Path) -> AsyncIterator[None]:
        """Serve on a socket at *path*."""
        server = await asyncio.start_unix_server(self._serve, path)
        try:
            yield
        finally:
            server.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the agent has gone
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        await reader.readexactly(_length(head))
        target = head.split(" ")[1]
        if target.startswith("/v1/events"):
            await self._stream(writer)
            return
        body = self._verdicts() if target == "/v1/agent" else self._state()
        text = json.dumps(body).encode()
        fields = f"content-type: application/json\r\ncontent-length: {len(text)}"
        writer.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode() + text)
        await writer.drain()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await writer.drain()
            await asyncio.sleep(_BUSY)
            if self._busy.exists():
                self._exclusive = 1 - self._exclusive
                event = {"number": next(self._numbers), "kind": "container.placed"}
                line = json.dumps(event).encode() + b"\n"
                writer.write(b"%x\r\n%b\r\n" % (len(line), line))

    def _state(self) -> JsonObject:
        cpus = {
            "online": "0-7",
            "reserved": "0",
            "exclusive": "1" if self._exclusive else "",
            "shared": "2-7" if self._exclusive else "1-7",
        }
        return _STATE | {"cpus": cpus}

    def _verdicts(self) -> JsonObject:
        path = self._spool / CONFIGURATION
        if path.exists() and time.time() - path.stat().st_mtime >= _JUDGED:
            file = decode(path.read_bytes())
            found = file.header
            named = {"name": found.name, "uid": found.uid}
            self._judged = {
                "object": named | {"generation": found.generation},
                "digest": file.digest,
                "verdict": "accepted",
            }
        self._judge_adjustments()
        return {"configuration": self._judged, "adjustments": self._adjustments}

    def _judge_adjustments(self) -> None:
        path = self._spool / ADJUSTMENTS
        if not path.exists():
            return
        written = path.stat().st_mtime_ns
        if written == self._adjusted or time.time() - written / 1e9 < _JUDGED:
            return
        file = decode(path.read_bytes())
        objects = [_verdict_on(one) for one in yaml.safe_load(file.body)]
        errors = [one["errors"] for one in objects if one["errors"]]
        self._adjustments = {
            "digest": file.digest,
            "objects": objects,
            "errors": errors[0] if errors else {},
        }
        self._adjusted = written


def _verdict_on(adjustment: JsonObject) -> JsonObject:
    name, asked = adjustment["metadata"]["name"], adjustment["spec"]["classes"]["rdt"]
    why = f"asks for RDT class {asked!r} by adjustment {name}; known: {KNOWN}"
    is_known = asked == KNOWN
    return {
        "object": {"name": name, "uid": adjustment["metadata"]["uid"]},
        "verdict": "accepted" if is_known else "rejected",
        "errors": {} if is_known else {"web": why},
    }


def _length(head: str) -> int:
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name == "content-length":
            return int(value)
    return 0
