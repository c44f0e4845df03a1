"""A strict parser of HTTP/1.1 requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, unquote

import msgspec

from nri_resmgr.values import InputError

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

# More than any of our paths takes; a query becomes a dict.
_MOST_PARAMETERS: Final = 32

_REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.([01])")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~\t\x80-\xff]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")


@dataclass(eq=False)
class RequestRefused(InputError):
    """A request is refused; handlers may raise this as well.

    Attributes:
        status: The HTTP status.
        why: A sentence for the client.
    """

    status: int
    why: str

    def __str__(self) -> str:
        return self.why


class HttpRequest(msgspec.Struct, frozen=True):
    """A request.

    Attributes:
        method: ``GET``, ``PUT`` and so on.
        path: The decoded path without the query.
        query: The parameters; the last one of a name wins.
        body: The raw body.
        host: The ``Host`` that the client asks, with its port.
    """

    method: str
    path: str
    query: Mapping[str, str] = _NOTHING
    body: bytes = b""
    host: str = ""


class Head(msgspec.Struct, frozen=True):
    """A request line with headers.

    Attributes:
        request: The request without its body.
        length: Length of the body in bytes.
        knows_chunks: Whether a reply may be chunked.
    """

    request: HttpRequest
    length: int
    knows_chunks: bool


def read_head(data: bytes) -> Head:
    """Parse a request's first line and headers.

    Args:
        data: The bytes before the body, including the blank line.

    Raises:
        RequestRefused: It is not HTTP/1.0 or 1.1, or has a form that no client of ours
            needs: two lengths, a chunked body, a target without path.

    Source:
        RFC 9112, sections 2 to 6.
    """
    first, *lines = data.removesuffix(b"\r\n\r\n").split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise RequestRefused(400, "not an HTTP/1.1 request")
    method, target, minor = match.groups()
    headers = _headers(lines)
    if minor == b"1" and "host" not in headers:
        raise RequestRefused(400, "the header Host is missing")
    if "transfer-encoding" in headers:
        raise RequestRefused(501, "a body needs a Content-Length")
    length = headers.get("content-length", "0")
    if not _LENGTH.fullmatch(length):
        raise RequestRefused(400, "Content-Length is not a number")
    host = headers.get("host", "")
    request = _request(method.decode(), target.decode(), host)
    return Head(request, int(length), knows_chunks=minor == b"1")


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise RequestRefused(400, "a header is malformed")
        name, value = match[1].decode().lower(), match[2].decode("latin-1").strip()
        # A proxy may have used the other one: a request could be smuggled.
        if name in ("content-length", "host") and name in headers:
            raise RequestRefused(400, f"the header {name} is given twice")
        headers[name] = value
    return headers


def _request(method: str, target: str, host: str) -> HttpRequest:
    # Not urlsplit(target): it parses what follows two slashes as a host.
    path, _, query = target.partition("#")[0].partition("?")
    try:
        pairs = parse_qsl(
            query,
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
        return HttpRequest(
            method,
            unquote(path, errors="strict"),
            MappingProxyType(dict(pairs)),
            host=host,
        )
    except ValueError:
        raise RequestRefused(400, "the target is malformed") from None
