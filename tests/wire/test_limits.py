"""Sizes at the limits, one past them, and what garbage can make us hold."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterable

import pytest

from nri_proto import (
    PLUGIN_METHODS,
    RUNTIME_METHODS,
    Call,
    CallReply,
    ClientConnection,
    Code,
    MessageTooLarge,
    RejectedCall,
    ServerConnection,
    Trunk,
    TrunkFrameTooLarge,
)
from tests.wire.spelled import (
    FOUR_MIB,
    PLUGIN,
    PLUGIN_SERVICE,
    REQUEST,
    RESPONSE,
    RUNTIME,
    SIXTEEN_MIB,
    field,
    request,
    trunk,
    ttrpc,
)

pytestmark = pytest.mark.slow  # sends so much that memory would show

CHUNK = 1 << 16  # what a socket read brings


def server() -> ServerConnection:
    return ServerConnection({PLUGIN_SERVICE: {"Synchronize"}})


def payload_for(size: int, envelope: Callable[[bytes], bytes]) -> bytes:
    """Find the payload, all 0xff, that makes the envelope that large."""
    overhead = len(envelope(b"\xff" * size)) - size
    payload = b"\xff" * (size - overhead)
    assert len(envelope(payload)) == size
    return payload


def in_chunks(stream: bytes) -> Iterable[bytes]:
    return (stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK))


def asks(payload: bytes) -> bytes:
    return request("Synchronize", payload)


def test_a_call_of_4_mib_fits_and_one_byte_more_uses_no_stream_id() -> None:
    client = ClientConnection()
    fits = payload_for(FOUR_MIB, asks)

    with pytest.raises(
        MessageTooLarge, match=r"^message of 4194305 bytes exceeds the limit of 4194304"
    ):
        client.call(PLUGIN_SERVICE, "Synchronize", fits + b"\xff")
    assert client.abandon() == ()
    assert client.call(PLUGIN_SERVICE, "Synchronize", fits) == (
        1,
        ttrpc(1, REQUEST, asks(fits)),
    )
    assert client.abandon() == (1,)


def test_a_reply_of_4_mib_fits_and_one_byte_more_leaves_the_call_open() -> None:
    serving = server()
    serving.receive_data(ttrpc(1, REQUEST, asks(b"")))
    fits = payload_for(FOUR_MIB, lambda payload: field(2, payload))

    with pytest.raises(MessageTooLarge):
        serving.reply(1, fits + b"\xff")
    assert serving.reply(1, fits) == ttrpc(1, RESPONSE, field(2, fits))


def test_a_request_of_16_mib_is_served() -> None:
    payload = payload_for(SIXTEEN_MIB, asks)
    message = ttrpc(1, REQUEST, asks(payload))

    events = Trunk.of_plugin().receive_data(trunk(PLUGIN, message))

    assert events == [Call(1, PLUGIN_SERVICE, "Synchronize", payload)]


def test_a_reply_of_16_mib_is_taken() -> None:
    payload = payload_for(SIXTEEN_MIB, lambda payload: field(2, payload))
    runtime = Trunk.of_runtime()
    runtime.call(PLUGIN_METHODS["Synchronize"], b"")

    events = runtime.receive_data(trunk(PLUGIN, ttrpc(1, RESPONSE, field(2, payload))))

    assert events == [CallReply(1, Code.OK, payload=payload)]


@pytest.mark.parametrize("first", [10, 11, 4096, SIXTEEN_MIB + 10, SIXTEEN_MIB + 11])
def test_a_larger_request_is_discarded_and_the_connection_continues(first: int) -> None:
    large = ttrpc(1, REQUEST, b"\xff" * (SIXTEEN_MIB + 1))
    following = ttrpc(3, REQUEST, asks(b"\xfe"))
    stream = large + following
    serving = server()

    events = serving.receive_data(stream[:first])
    answer = serving.refuse(1, events[0].code, "no")  # type: ignore[union-attr]  # a RejectedCall, as asserted below
    events += serving.receive_data(stream[first:])

    message = "message length 16777217 exceed maximum message size of 16777216"
    assert events == [
        RejectedCall(1, Code.RESOURCE_EXHAUSTED, message),
        Call(3, PLUGIN_SERVICE, "Synchronize", b"\xfe"),
    ]
    assert answer == ttrpc(1, RESPONSE, field(1, field(1, 8) + field(2, "no")))


def test_a_larger_request_of_an_unknown_type_is_discarded_without_a_reply() -> None:
    large = ttrpc(1, 4, b"\xff" * (SIXTEEN_MIB + 1))
    following = ttrpc(1, REQUEST, asks(b"\xfe"))

    events = [
        event
        for connection in [server()]
        for chunk in in_chunks(large + following)
        for event in connection.receive_data(chunk)
    ]

    assert events == [Call(1, PLUGIN_SERVICE, "Synchronize", b"\xfe")]


def test_a_larger_reply_ends_its_call_only() -> None:
    client = ClientConnection()
    for _ in range(2):
        client.call("a.B", "Do", b"")
    large = ttrpc(1, RESPONSE, b"\xff" * (SIXTEEN_MIB + 1))

    events = client.receive_data(large + ttrpc(3, RESPONSE))

    assert events == [
        CallReply(
            1,
            Code.RESOURCE_EXHAUSTED,
            "reply of 16777217 bytes exceeds 16777216",
        ),
        CallReply(3, Code.OK),
    ]


@pytest.mark.parametrize("connection", [PLUGIN, RUNTIME])
def test_a_trunk_frame_longer_than_any_release_sends_is_the_peers_fault(
    connection: int,
) -> None:
    header = connection.to_bytes(4) + (SIXTEEN_MIB + 11).to_bytes(4)

    with pytest.raises(TrunkFrameTooLarge) as raised:
        Trunk.of_plugin().receive_data(header)

    assert str(raised.value) == (
        f"multiplexer frame of 16777227 bytes on connection {connection} "
        "exceeds the limit of 16777226"
    )


def test_a_trunk_frame_for_nothing_may_be_of_any_length() -> None:
    plugin = Trunk.of_plugin()
    plugin.receive_data((7).to_bytes(4) + (SIXTEEN_MIB + 11).to_bytes(4))
    for _ in range(SIXTEEN_MIB // CHUNK):
        assert plugin.receive_data(b"\xff" * CHUNK) == []

    assert plugin.receive_data(
        b"\xff" * 11 + trunk(PLUGIN, ttrpc(1, REQUEST, request("Shutdown")))
    ) == [Call(1, PLUGIN_SERVICE, "Shutdown", b"")]


def peak_growth(end: Trunk, chunks: Iterable[bytes]) -> int:
    """Feed all, refuse each call; return the maximum of bytes kept."""
    tracemalloc.start()
    try:
        for chunk in chunks:
            for event in end.receive_data(chunk):
                match event:
                    case Call(stream_id) | RejectedCall(stream_id):
                        end.refuse(stream_id, Code.UNKNOWN, "no")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


NOISE = random.Random(20).randbytes(CHUNK)  # noqa: S311  a fixed seed, no secret
ENDLESS = trunk(PLUGIN, NOISE)
UNFINISHED = trunk(PLUGIN, SIXTEEN_MIB.to_bytes(4) + bytes((0, 0, 0, 1, 1, 0)))
BEYOND = trunk(PLUGIN, (0xFFFFFFFF).to_bytes(4) + bytes((0, 0, 0, 1, 1, 0)))


@pytest.mark.parametrize(
    ("chunks", "limit"),
    [
        pytest.param(
            [(9).to_bytes(4) + b"\xff" * 4, *[b"\xff" * CHUNK] * 1024],
            4 * CHUNK,
            id="64 MiB of a frame for an unknown connection are not kept",
        ),
        pytest.param(
            [BEYOND, *[ENDLESS] * 1024],
            4 * CHUNK,
            id="64 MiB of an oversize message are not kept",
        ),
        pytest.param(
            [UNFINISHED, *[ENDLESS] * 255],
            SIXTEEN_MIB * 5 // 4,
            id="an unfinished message is kept once",
        ),
        pytest.param(
            [trunk(PLUGIN, b"")] * 100_000,
            4 * CHUNK,
            id="empty frames leave nothing",
        ),
        pytest.param(
            [
                trunk(PLUGIN, ttrpc(stream_id, kind))
                for stream_id in range(10_000)
                for kind in (0, 1, 3)
            ],
            4 * CHUNK,
            id="answered refusals leave nothing",
        ),
        pytest.param(
            [trunk(RUNTIME, ttrpc(stream_id, 2)) for stream_id in range(30_000)],
            4 * CHUNK,
            id="strays leave nothing",
        ),
    ],
)
def test_garbage_is_not_kept(chunks: list[bytes], limit: int) -> None:
    assert peak_growth(Trunk.of_plugin(), chunks) < limit


def test_finished_calls_leave_no_memory() -> None:
    plugin = Trunk.of_plugin()
    tracemalloc.start()
    try:
        for _ in range(10_000):
            stream_id, _ = plugin.call(RUNTIME_METHODS["UpdateContainers"], b"")
            plugin.receive_data(trunk(RUNTIME, ttrpc(stream_id, RESPONSE)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < CHUNK
