"""A small API server for tests: real sockets, TLS, and the faults that a test asks for.

It keeps objects of any kind in memory, without validation or admission: lists in parts,
watches with history and bookmarks, server-side apply, merge patches, status
subresources, tokens. `FakeApiServer.faults` has what to do to requests instead.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import ssl
import uuid
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs

Json = dict[str, Any]
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?$"
)


@attrs.frozen
class Request:
    """A request that arrived.

    Attributes:
        headers: By names in lower case.
        port: Of the client's end of the connection.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    port: int

    @property
    def is_watch(self) -> bool:
        """Whether it wants a stream."""
        return "watch" in self.query


@attrs.define(eq=False)
class Wire:
    """The way back to a client."""

    writer: asyncio.StreamWriter

    async def answer(
        self, status: int, body: object, headers: dict[str, str] | None = None
    ) -> None:
        """Send a whole response: JSON, or text as it is."""
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._head(status, {"content-length": str(len(text)), **(headers or {})})
        self.writer.write(text)
        await self.writer.drain()

    async def begin(self) -> None:
        """Begin a response that is sent in pieces."""
        self._head(200, {"transfer-encoding": "chunked"})
        await self.writer.drain()

    async def piece(self, data: bytes) -> None:
        """Send a piece; none ends the response."""
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self.writer.drain()

    def _head(self, status: int, headers: dict[str, str]) -> None:
        fields = {"date": formatdate(usegmt=True), "content-type": "application/json"}
        lines = "".join(
            f"{name}: {value}\r\n" for name, value in (fields | headers).items()
        )
        phrase = HTTPStatus(status).phrase
        self.writer.write(f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode())


Fault = Callable[[Request, Wire], Awaitable[bool]]
"""Answers a request, and returns whether it did."""


def status(code: int, reason: str, message: str, **details: object) -> Json:
    """Return a ``metav1.Status``."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


@attrs.define(eq=False)
class FakeApiServer:
    """An asynchronous context manager; serves while it is open.

    Attributes:
        tls: What to serve by; none for plain HTTP.
        host: The address to listen on.
        kinds: What is installed, as GROUP/PLURAL.
        tokens: The bearer tokens that are accepted; empty for any.
        faults: Tried in turn at each request; the first that answers is removed.
        requests: All that arrived.
        bookmark: The seconds between bookmarks; none for no bookmarks.
    """

    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    kinds: set[str] = attrs.Factory(
        lambda: {"/nodes", "/pods", "/configmaps", "config.nri/balloonspolicies"}
    )
    tokens: set[str] = attrs.Factory(set)
    faults: list[Fault] = attrs.Factory(list)
    requests: list[Request] = attrs.Factory(list)
    bookmark: float | None = None
    port: int = 0
    version: int = 100
    compacted: int = 0
    objects: dict[tuple[str, str, str], Json] = attrs.Factory(dict)
    _log: list[tuple[int, str, str, Json]] = attrs.Factory(list)
    _changed: asyncio.Event = attrs.Factory(asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = attrs.Factory(set)

    @property
    def url(self) -> str:
        """Its address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected, self.host, self.port, ssl=self.tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening, and break all connections."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)

    # Objects

    def put(self, path: str, body: Json) -> Json:
        """Create an object, or replace all but its identity.

        Args:
            path: Of its collection, with the namespace.
            body: With ``metadata.name``.
        """
        found = _PATH.match(path)
        assert found is not None
        key = self._key(found, body["metadata"]["name"])
        return self._write(key, copy.deepcopy(body))

    def remove(self, path: str, name: str) -> None:
        """Delete an object."""
        found = _PATH.match(path)
        assert found is not None
        key = self._key(found, name)
        body = self.objects.pop(key)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self._send_to_watches(key, "DELETED", body)

    def compact(self) -> None:
        """Forget what changed up to now: older versions have expired."""
        self.compacted = self.version
        self._log.clear()

    def _key(self, found: re.Match[str], name: str) -> tuple[str, str, str]:
        kind = f"{found['group'] or ''}/{found['plural']}"
        return (kind, found["namespace"] or "", name)

    def _write(self, key: tuple[str, str, str], body: Json) -> Json:
        before = self.objects.get(key)
        self.version += 1
        old = before["metadata"] if before else {}
        metadata = body.setdefault("metadata", {})
        metadata |= {
            "name": key[2],
            "uid": old.get("uid", str(uuid.uuid4())),
            "resourceVersion": str(self.version),
        }
        if key[1]:
            metadata["namespace"] = key[1]
        if not key[0].startswith("/"):  # the core group's kinds have none
            has_changed = before is None or before.get("spec") != body.get("spec")
            metadata["generation"] = old.get("generation", 0) + has_changed
        self.objects[key] = body
        self._send_to_watches(
            key, "MODIFIED" if before else "ADDED", copy.deepcopy(body)
        )
        return body

    def _send_to_watches(
        self, key: tuple[str, str, str], what: str, body: Json
    ) -> None:
        self._log.append((self.version, "/".join(key[:2]), what, body))
        self._changed.set()
        self._changed = asyncio.Event()

    # Connections

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while request := await _read(reader, writer):
                self.requests.append(request)
                await self._serve(request, Wire(writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server is being closed
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, request: Request, wire: Wire) -> None:
        for fault in self.faults:
            if await fault(request, wire):
                self.faults.remove(fault)
                return
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        found = _PATH.match(request.path)
        if self.tokens and token not in self.tokens:
            await wire.answer(401, status(401, "Unauthorized", "Unauthorized"))
        elif kinds := self._kinds_at(request.path):
            await wire.answer(200, kinds)
        elif found is None or self._key(found, "")[0] not in self.kinds:
            await wire.answer(404, b"404 page not found\n")
        elif request.is_watch:
            await self._watch(request, found, wire)
        elif request.method == "GET" and not found["name"]:
            await wire.answer(200, self._list(request, found))
        else:
            await self._object(request, found, wire)

    def _kinds_at(self, path: str) -> Json:
        """Return the kinds of a group; nothing for another path or an unknown group."""
        group = path.removeprefix("/apis/").rpartition("/")[0]
        names = sorted(
            plural
            for prefix, _, plural in (one.partition("/") for one in self.kinds)
            if prefix == group and group
        )
        resources = [{"name": name} for name in names]
        return {"kind": "APIResourceList", "resources": resources} if names else {}

    async def _object(self, request: Request, found: re.Match[str], wire: Wire) -> None:
        sent = json.loads(request.body) if request.body else {}
        name = unquote(found["name"] or "") or sent["metadata"].get("name", "generated")
        key = self._key(found, name)
        before = self.objects.get(key)
        is_apply = "apply-patch" in request.headers.get("content-type", "")
        if request.method == "POST" and before is not None:
            what = f'{key[0].split("/")[1]} "{name}" already exists'
            await wire.answer(409, status(409, "AlreadyExists", what, name=name))
        elif before is None and not (request.method == "POST" or is_apply):
            what = f'{key[0].split("/")[1]} "{name}" not found'
            await wire.answer(404, status(404, "NotFound", what, name=name))
        elif request.method == "GET":
            await wire.answer(200, before)
        elif request.method == "DELETE":
            wanted = {"metadata": sent.get("preconditions", {})}
            if _is_outrun(before or {}, wanted):
                await wire.answer(409, status(409, "Conflict", name, name=name))
                return
            self.remove(request.path.rpartition("/")[0], name)
            await wire.answer(200, {"kind": "Status", "status": "Success"})
        elif before is not None and _is_outrun(before, sent):
            what = f'{key[0].split("/")[1]} "{name}" has been modified'
            await wire.answer(409, status(409, "Conflict", what, name=name))
        else:
            body = _merged(before or {}, sent)
            code = 201 if before is None else 200
            await wire.answer(code, self._write(key, body))

    # Lists and watches

    def _list(self, request: Request, found: re.Match[str]) -> Json:
        prefix = self._key(found, "")[:2]
        items = [
            _shown(body, request)
            for key, body in self.objects.items()
            if key[:2] == prefix and _selects(request, body)
        ]
        begin = int(request.query.get("continue", 0))
        end = begin + int(request.query.get("limit", len(items) or 1))
        metadata = {"resourceVersion": str(self.version)}
        if end < len(items):
            metadata["continue"] = str(end)
        return {"kind": "List", "metadata": metadata, "items": items[begin:end]}

    async def _watch(self, request: Request, found: re.Match[str], wire: Wire) -> None:
        sent = int(request.query["resourceVersion"])
        await wire.begin()
        if sent < self.compacted:
            expired = status(410, "Expired", f"too old resource version: {sent}")
            await wire.piece(line("ERROR", expired))
            await wire.piece(b"")
            return
        prefix = "/".join(self._key(found, "")[:2])
        while True:
            changed = self._changed
            for version, kind, what, body in list(self._log):
                if version > sent and kind == prefix and _selects(request, body):
                    await wire.piece(line(what, _shown(body, request)))
            sent = self.version
            try:
                await asyncio.wait_for(changed.wait(), self.bookmark)
            except TimeoutError:
                metadata = {"resourceVersion": str(sent), "creationTimestamp": None}
                await wire.piece(line("BOOKMARK", {"metadata": metadata}))


def line(what: str, body: object) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": what, "object": body}).encode() + b"\n"


async def _read(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (one.partition(":") for one in head[1:] if one)
    }
    url = urlsplit(target)
    return Request(
        method=method,
        path=url.path,
        query=dict(parse_qsl(url.query)),
        headers=headers,
        body=await reader.readexactly(int(headers.get("content-length", 0))),
        port=writer.get_extra_info("peername")[1],
    )


def _selects(request: Request, body: Json) -> bool:
    selector = request.query.get("fieldSelector", "")
    return not selector or selector == f"metadata.name={body['metadata']['name']}"


def _shown(body: Json, request: Request) -> Json:
    if "as=PartialObjectMetadata" not in request.headers.get("accept", ""):
        return body
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": body["metadata"],
    }


def _is_outrun(before: Json, sent: Json) -> bool:
    """Source: Kubernetes API conventions, "Concurrency Control and Consistency"."""
    wanted = sent.get("metadata", {}).get("resourceVersion")
    return wanted not in (None, before["metadata"]["resourceVersion"])


def _merged(before: Json, patch: Json) -> Json:
    """Source: RFC 7396."""
    result = copy.deepcopy(before)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            inner = result.get(key)
            result[key] = _merged(inner if isinstance(inner, dict) else {}, value)
        else:
            result[key] = value
    return result
