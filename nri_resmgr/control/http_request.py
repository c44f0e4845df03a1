"""What a client asks, out of the bytes that it sent: a strict reading of HTTP/1.1."""

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

# More than any of our paths takes; a query is turned into a dict.
_MOST_PARAMETERS: Final = 32

_REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.([01])")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~\t\x80-\xff]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")


@dataclass(eq=False)
class RequestRefused(InputError):
    """A request that is not answered; handlers may raise it, too.

    Attributes:
        status: The HTTP status.
        why: A sentence for the client.
    """

    status: int
    why: str

    def __str__(self) -> str:
        return self.why


class Request(msgspec.Struct, frozen=True):
    """One request.

    Attributes:
        method: ``GET``, ``PUT`` and so on.
        path: Without the query, its percent signs decoded.
        query: The parameters; of one that is given twice the last counts.
        body: As it came.
    """

    method: str
    path: str
    query: Mapping[str, str] = _NOTHING
    body: bytes = b""


class Head(msgspec.Struct, frozen=True):
    """What comes before the body.

    Attributes:
        request: The request without its body.
        length: Bytes of the body that follows.
        knows_chunks: Whether a reply may come in chunks.
    """

    request: Request
    length: int
    knows_chunks: bool


def read_head(data: bytes) -> Head:
    """Read a request's first line and headers.

    Args:
        data: Everything before the body, the blank line included.

    Raises:
        RequestRefused: It is not HTTP/1.0 or 1.1, or it is in a form that none of
            our clients needs: two lengths, a body in chunks, a target without path.

    Source:
        RFC 9112, sections 2 to 6.
    """
    first, *lines = data.removesuffix(b"\r\n\r\n").split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise RequestRefused(400, "not a request of HTTP/1.1")
    method, target, minor = match.groups()
    headers = _headers(lines)
    if minor == b"1" and "host" not in headers:
        raise RequestRefused(400, "a header Host is needed")
    if "transfer-encoding" in headers:
        raise RequestRefused(501, "a body needs a Content-Length")
    length = headers.get("content-length", "0")
    if not _LENGTH.fullmatch(length):
        raise RequestRefused(400, "Content-Length is not a number")
    request = _request(method.decode(), target.decode())
    return Head(request, int(length), knows_chunks=minor == b"1")


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise RequestRefused(400, "a header is malformed")
        name, value = match[1].decode().lower(), match[2].decode("latin-1").strip()
        # Who is in front of us may have believed the other one.
        if name in ("content-length", "host") and name in headers:
            raise RequestRefused(400, f"a header {name} came twice")
        headers[name] = value
    return headers


def _request(method: str, target: str) -> Request:
    # Not urlsplit(target): it takes what follows two slashes for a host.
    path, _, query = target.partition("#")[0].partition("?")
    try:
        pairs = parse_qsl(
            query,
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
        return Request(
            method, unquote(path, errors="strict"), MappingProxyType(dict(pairs))
        )
    except ValueError:
        raise RequestRefused(400, "the target is malformed") from None
