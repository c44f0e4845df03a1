"""The answers of an HTTP server, its requests, and their limits."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.control.http_request import HttpRequest, RequestRefused
from nri_resmgr.values.printable import printable, printable_json

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
    "text_reply",
]

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
    return HttpReply(printable_json(json.dumps(data)).encode() + b"\n", JSON, status)


def text_reply(text: str, status: int = 200) -> HttpReply:
    """Return a reply with plain text."""
    return HttpReply(text.encode(), TEXT, status)


Handler: TypeAlias = Callable[[HttpRequest], HttpReply | Awaitable[HttpReply]]
Routes: TypeAlias = Mapping[tuple[str, str], Handler]
"""Handlers by method and path. ``GET`` implies ``HEAD``."""


def _refuse_as_text(status: int, why: str) -> HttpReply:
    return text_reply(f"{printable(why)}\n", status)


def _admit_all(_: socket.socket) -> str:
    return ""


def _permit_all(_: socket.socket, __: HttpRequest) -> str:
    return ""


class ClientLimits(msgspec.Struct, frozen=True):
    """Limits of clients.

    Attributes:
        head: Bytes of the first line and the headers.
        body: Bytes of a request's body.
        connections: Connections at the same time; the one whose client has been waited
            for longest makes room for a further one.
        streams: Replies in pieces at the same time, which may go on for ever; further
            ones are refused. Fewer than *connections*, so that others get a place.
        seconds: Time for a whole request to arrive, and for a client to read its reply;
            in pieces, each of them.
    """

    head: int = 16 << 10
    body: int = 64 << 10
    connections: int = 32
    streams: int = 16
    seconds: float = 10.0


class Site(msgspec.Struct, frozen=True):
    """A set of routes and how to serve them.

    Attributes:
        routes: The handlers.
        limits: The limits of clients.
        admit: Returns why a client is refused; empty to admit it.
        permit: Returns why its request is refused; empty to answer it.
        refuse: Makes the reply for a status and a sentence.
    """

    routes: Routes
    limits: ClientLimits = ClientLimits()
    admit: Callable[[socket.socket], str] = _admit_all
    permit: Callable[[socket.socket, HttpRequest], str] = _permit_all
    refuse: Callable[[int, str], HttpReply] = _refuse_as_text
