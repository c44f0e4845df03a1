"""What a client sends, and what it makes of replies."""

from __future__ import annotations

from typing import Any

import pytest

from nri_proto import CallReply, ClientConnection, Code, Stray, StreamIdsExhausted
from tests.wire.spelled import (
    DATA,
    REQUEST,
    RESPONSE,
    RUNTIME_SERVICE,
    field,
    request,
    status,
    ttrpc,
)


def client_with(calls: int) -> ClientConnection:
    client = ClientConnection()
    for _ in range(calls):
        client.call(RUNTIME_SERVICE, "UpdateContainers", b"")
    return client


@pytest.mark.parametrize(
    ("options", "envelope"),
    [
        pytest.param({}, {}, id="nothing more than needed"),
        pytest.param({"timeout": 2.5}, {"timeout_nano": 2_500_000_000}, id="a timeout"),
        pytest.param(
            {"timeout": -0.25},
            {"timeout_nano": -250_000_000},
            id="a deadline that passed while sending",
        ),
        pytest.param(
            {"timeout": 0.0},
            {"timeout_nano": 1},
            id="a deadline of this very moment is not no deadline",
        ),
        pytest.param(
            {"timeout": 1e-12},
            {"timeout_nano": 1},
            id="nor is one less than a nanosecond away",
        ),
        pytest.param(
            {"metadata": [("a", "1"), ("b", ""), ("a", "2")]},
            {"metadata": [("a", "1"), ("b", ""), ("a", "2")]},
            id="metadata in order, keys repeated",
        ),
    ],
)
def test_a_call_is_a_request_frame(
    options: dict[str, Any], envelope: dict[str, Any]
) -> None:
    sent = ClientConnection().call("a.B", "Do", b"\xff\x00", **options)

    assert sent == (
        1,
        ttrpc(1, REQUEST, request("Do", b"\xff\x00", service="a.B", **envelope)),
    )


def test_stream_ids_are_odd_and_increase() -> None:
    client = ClientConnection()

    sent = [client.call("a.B", "Do", b"") for _ in range(1000)]

    assert [stream_id for stream_id, _ in sent] == list(range(1, 2000, 2))
    assert [int.from_bytes(frame[4:8]) for _, frame in sent] == list(range(1, 2000, 2))


def test_the_last_stream_id_is_used_and_then_none() -> None:
    client = ClientConnection()
    client._next_id = 0xFFFFFFFF  # noqa: SLF001 - two thousand million calls otherwise

    assert client.call("a.B", "Do", b"")[0] == 0xFFFFFFFF
    with pytest.raises(StreamIdsExhausted, match="open a new connection"):
        client.call("a.B", "Do", b"")


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        pytest.param(b"", CallReply(1, 0), id="zero bytes are an empty success"),
        pytest.param(
            field(2, b"\xff\x00"), CallReply(1, 0, payload=b"\xff\x00"), id="a payload"
        ),
        pytest.param(
            field(1, b"") + field(2, b"\xff"),
            CallReply(1, 0, payload=b"\xff"),
            id="a status without a code is a success",
        ),
        pytest.param(
            field(1, field(2, "fine")) + field(2, b"\xff"),
            CallReply(1, 0, payload=b"\xff"),
            id="a success has no message",
        ),
        pytest.param(
            status(5, "gone"), CallReply(1, Code.NOT_FOUND, "gone"), id="an error"
        ),
        pytest.param(
            status(12, "method X") + field(2, b"\xff"),
            CallReply(1, Code.UNIMPLEMENTED, "method X"),
            id="an error has no payload",
        ),
        pytest.param(
            status(4711, "new"), CallReply(1, 4711, "new"), id="an unknown code is kept"
        ),
        pytest.param(
            status(-7, "odd"), CallReply(1, -7, "odd"), id="a negative code too"
        ),
        pytest.param(
            field(
                1,
                field(1, 13)
                + field(2, "why")
                + field(3, field(1, "type/x") + field(2, b"\xff"))
                + field(99, b"\xff"),
            )
            + field(98, 1),
            CallReply(1, Code.INTERNAL, "why"),
            id="details and unknown fields are skipped",
        ),
    ],
)
def test_replies(data: bytes, reply: CallReply) -> None:
    assert client_with(1).receive_data(ttrpc(1, RESPONSE, data)) == [reply]


@pytest.mark.parametrize("data", [b"\xff\xff", field(1, field(2, b"\xff"))])
def test_a_reply_that_does_not_parse_ends_its_call_only(data: bytes) -> None:
    broken, following = client_with(2).receive_data(
        ttrpc(1, RESPONSE, data) + ttrpc(3, RESPONSE)
    )

    assert isinstance(broken, CallReply)
    assert (broken.stream_id, broken.code) == (1, Code.INTERNAL)
    assert broken.message.startswith("broken reply: ")
    assert following == CallReply(3, 0)


@pytest.mark.parametrize("kind", [0, REQUEST, DATA, 4, 255])
def test_a_frame_of_another_type_ends_a_unary_call(kind: int) -> None:
    client = client_with(2)

    assert client.receive_data(ttrpc(1, kind, b"\xff") + ttrpc(3, RESPONSE)) == [
        CallReply(1, Code.INTERNAL, f"frame type {kind} on a unary stream"),
        CallReply(3, 0),
    ]


def test_replies_come_in_any_order_and_late_ones_are_strays() -> None:
    client = client_with(3)
    frames = [5, 1, 1, 7, 2, 0, 3, 5]

    assert client.receive_data(b"".join(ttrpc(id_, RESPONSE) for id_ in frames)) == [
        CallReply(5, 0),
        CallReply(1, 0),
        Stray(1),
        Stray(7),
        Stray(2),
        Stray(0),
        CallReply(3, 0),
        Stray(5),
    ]


def test_a_lost_connection_abandons_open_calls_once() -> None:
    client = client_with(18)  # enough for a set's order to differ from the ids'
    client.receive_data(ttrpc(3, RESPONSE) + ttrpc(11, RESPONSE))

    assert client.abandon() == (1, 5, 7, 9, *range(13, 36, 2))
    assert client.abandon() == ()
    assert client.receive_data(ttrpc(1, RESPONSE)) == [Stray(1)]
