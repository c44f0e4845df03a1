"""Streams for the laws of the wire: legal frames mixed with noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.wire.spelled import (
    DATA,
    PLUGIN,
    PLUGIN_SERVICE,
    REQUEST,
    RESPONSE,
    RUNTIME,
    RUNTIME_SERVICE,
    field,
    request,
    status,
    trunk,
    ttrpc,
)

# Time is no part of these claims, and the machine may be busy.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# 0xff shows what zeros would hide.
noise = st.binary(max_size=12) | st.integers(0, 40).map(lambda size: b"\xff" * size)
# A short alphabet: one to four bytes of UTF-8 each. Hypothesis builds a table of all
# characters otherwise, which takes seconds in a fresh clone.
texts = st.text("\0a\u00e9\u2713\U0001f600", max_size=5)

requests = st.builds(
    request,
    st.sampled_from(["Configure", "Synchronize", "Shutdown", "Nothing"]),
    noise,
    service=st.sampled_from([PLUGIN_SERVICE, PLUGIN_SERVICE, RUNTIME_SERVICE]),
    timeout_nano=st.integers(-(2**63), 2**63 - 1) | st.just(0),
    metadata=st.lists(st.tuples(texts, texts), max_size=2),
)
responses = (
    st.just(b"")
    | st.builds(status, st.integers(-3, 20), texts)
    | noise.map(lambda payload: field(2, payload))
)

stream_ids = st.one_of(
    st.sampled_from([1, 3, 5, 7, 9, 11]),
    st.sampled_from([1, 3, 5, 7, 9, 11]),
    st.integers(0, 15),
    st.sampled_from([0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF]),
)
flags = st.sampled_from([0, 0, 0, 1, 2, 4, 0xFF])


def oversize_header(stream_id: int, kind: int, over: int) -> bytes:
    """Announce a message that never comes to its end here."""
    return ((16 << 20) + over).to_bytes(4) + stream_id.to_bytes(4) + bytes((kind, 0))


messages = st.one_of(
    st.builds(ttrpc, stream_ids, st.just(REQUEST), requests, flags),
    st.builds(ttrpc, stream_ids, st.just(REQUEST), requests, flags),
    st.builds(ttrpc, stream_ids, st.just(RESPONSE), responses, flags),
    st.builds(ttrpc, stream_ids, st.just(DATA), noise, flags),
    st.builds(ttrpc, stream_ids, st.sampled_from([0, 4, 255]), noise, flags),
    st.builds(ttrpc, stream_ids, st.sampled_from([REQUEST, RESPONSE]), noise),
)
rare_messages = st.one_of(
    st.builds(oversize_header, stream_ids, st.integers(0, 4), st.integers(1, 99)),
    noise,
)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut *data*; cuts past its end make empty pieces."""
    edges = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@st.composite
def connections(draw: st.DrawFn) -> bytes:
    """Draw the bytes of one logical connection."""
    parts = draw(st.lists(messages, max_size=8))
    if draw(st.integers(0, 4)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), draw(rare_messages))
    return b"".join(parts)


@st.composite
def trunks(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a socket: both connections interleaved, and unknown ones."""
    left: list[tuple[int, Iterator[bytes]]] = []
    for connection in (PLUGIN, RUNTIME):
        data = draw(connections())
        cuts = draw(st.lists(st.integers(0, len(data) + 3), max_size=6))
        left.append((connection, iter(pieces(data, cuts))))
    stream = b""
    while left:
        turn = draw(st.integers(0, len(left) - 1))
        connection, rest = left[turn]
        piece = next(rest, None)
        if piece is None:
            left.pop(turn)
            continue
        stream += trunk(connection, piece)
        if draw(st.integers(0, 5)) == 0:
            stream += trunk(draw(st.sampled_from([0, 3, 0xFFFFFFFF])), draw(noise))
    return stream + draw(st.just(b"") | tails)


tails = st.one_of(
    noise,
    # Length fields around the limit, for an open and an unknown connection.
    st.builds(
        lambda connection, over: (
            connection.to_bytes(4) + ((16 << 20) + 10 + over).to_bytes(4) + b"\xff" * 9
        ),
        st.sampled_from([1, 2, 3]),
        st.integers(-1, 2),
    ),
)


def deliveries(stream: bytes) -> st.SearchStrategy[list[bytes]]:
    """Deliver whole, byte by byte, or cut anywhere."""
    return st.one_of(
        st.just([stream]),
        st.just([stream[at : at + 1] for at in range(len(stream))]),
        st.lists(st.integers(0, len(stream)), max_size=8).map(
            lambda cuts: pieces(stream, cuts)
        ),
    )
