"""An answer of the small HTTP server, and how it is written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

import msgspec

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
JSON_LINES: Final = "application/jsonl"


class Reply(msgspec.Struct, frozen=True):
    """One answer.

    Attributes:
        body: All of it; or what yields it piece by piece, each of which is sent at
            once. The iterator is closed when the client goes away.
        content_type: Its media type.
        status: The HTTP status.
        headers: More of them.
    """

    body: bytes | AsyncIterator[bytes]
    content_type: str = JSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def json_reply(data: object, status: int = 200) -> Reply:
    """Answer with *data* as JSON."""
    return Reply(json.dumps(data).encode() + b"\n", JSON, status)


def text_reply(text: str, status: int = 200) -> Reply:
    """Answer with *text* as it is."""
    return Reply(text.encode(), TEXT, status)


def chunk_of(piece: bytes) -> bytes:
    """Wrap a piece that is not empty: an empty chunk means the end."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def head_of(reply: Reply, more: tuple[tuple[str, str], ...]) -> bytes:
    """Write the status line and the headers, *more* among them."""
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
