"""Heads of requests: read as they are meant, or refused with a status."""

from __future__ import annotations

import string
from types import MappingProxyType
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.control.http_request import Head, HttpRequest, RequestRefused, read_head

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
TOKENS = st.text(string.ascii_letters + string.digits + "-_", min_size=1)
VALUES = st.text(string.printable[:95]).map(str.strip)


@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE"]),
    path=TEXTS,
    query=st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=5),
    headers=st.dictionaries(TOKENS.map(str.lower), VALUES, max_size=5),
    length=st.integers(0, 10**9),
)
def test_a_request_is_read_as_it_was_written(
    method: str,
    path: str,
    query: dict[str, str],
    headers: dict[str, str],
    length: int,
) -> None:
    known = ("host", "content-length", "transfer-encoding")
    lines = [f"{name}: {text}" for name, text in headers.items() if name not in known]
    lines += ["Host: x", f"Content-Length: {length}"]
    target = f"/{quote(path, safe='/')}?{urlencode(query)}"
    text = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{one}\r\n" for one in lines)

    assert read_head(f"{text}\r\n".encode()) == Head(
        HttpRequest(method, f"/{path}", MappingProxyType(query), host="x"),
        length,
        knows_chunks=True,
    )


@given(
    st.binary()
    | st.binary().map(
        lambda data: b"GET / HTTP/1.1\r\nHost: x\r\n" + data + b"\r\n\r\n"
    )
    | st.binary().map(lambda data: b"GET /" + data + b" HTTP/1.0\r\n\r\n")
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        head = read_head(data)
    except RequestRefused as refusal:
        assert refusal.status in (400, 501)  # noqa: PT017 - it may be legal, too
    else:
        assert head.request.path.startswith("/")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("GET / HTTP/1.1\r\n", (400, "the header Host is missing")),
        ("GET / HTTP/2.0\r\nHost: x\r\n", (400, "not an HTTP/1.1 request")),
        ("GET http://x/ HTTP/1.1\r\nHost: x\r\n", (400, "not an HTTP/1.1 request")),
        ("get / HTTP/1.1\r\nHost: x\r\n", (400, "not an HTTP/1.1 request")),
        ("GET /%ff HTTP/1.1\r\nHost: x\r\n", (400, "the target is malformed")),
        ("GET / HTTP/1.1\r\nHost : x\r\n", (400, "a header is malformed")),
        ("GET / HTTP/1.1\r\nHost: x\r\n y\r\n", (400, "a header is malformed")),
        ("GET / HTTP/1.1\r\nHost: x\nA: b\r\n", (400, "a header is malformed")),
        (
            "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\ncontent-length: 2\r\n",
            (400, "the header content-length is given twice"),
        ),
        (
            "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n",
            (400, "Content-Length is not a number"),
        ),
        (
            "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n",
            (501, "a body needs a Content-Length"),
        ),
        (
            f"GET /?{'&'.join(f'a{n}=1' for n in range(40))} HTTP/1.1\r\nHost: x\r\n",
            (400, "the target is malformed"),
        ),
    ],
)
def test_ambiguous_requests_are_refused(head: str, expected: tuple[int, str]) -> None:
    with pytest.raises(RequestRefused) as raised:
        read_head(f"{head}\r\n".encode())

    assert (raised.value.status, raised.value.why) == expected
