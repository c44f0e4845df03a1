"""What a server makes of requests, the illegal ones included."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nri_proto import Call, Code, RejectedCall, ServerConnection, StreamNotOpen
from nri_proto.server import MAX_OPEN_CALLS
from tests.wire.spelled import (
    DATA,
    PLUGIN_SERVICE,
    REQUEST,
    RESPONSE,
    field,
    request,
    status,
    ttrpc,
)

EVEN = "StreamID must be odd for client initiated streams"
REUSED = "StreamID cannot be re-used and must increment"


def server() -> ServerConnection:
    return ServerConnection({PLUGIN_SERVICE: {"Configure", "Shutdown"}})


def asks(stream_id: int, payload: bytes = b"") -> bytes:
    return ttrpc(stream_id, REQUEST, request("Configure", payload))


def configure(stream_id: int, payload: bytes = b"") -> Call:
    return Call(stream_id, PLUGIN_SERVICE, "Configure", payload)


def invalid(stream_id: int, message: str) -> RejectedCall:
    return RejectedCall(stream_id, Code.INVALID_ARGUMENT, message)


@pytest.mark.parametrize(
    ("frames", "events"),
    [
        pytest.param(
            [asks(1), asks(3), asks(5)],
            [configure(1), configure(3), configure(5)],
            id="odd ids in steps of two",
        ),
        pytest.param(
            [asks(5), asks(99), asks(0xFFFFFFFF)],
            [configure(5), configure(99), configure(0xFFFFFFFF)],
            id="gaps are legal up to the last id",
        ),
        pytest.param(
            [asks(3), asks(3), asks(1), asks(5)],
            [configure(3), invalid(3, REUSED), invalid(1, REUSED), configure(5)],
            id="an id used twice or a smaller one is refused, the next is served",
        ),
        pytest.param(
            [asks(0), asks(2), asks(4), asks(1)],
            [invalid(0, EVEN), invalid(2, EVEN), invalid(4, EVEN), configure(1)],
            id="even ids are refused and do not count as seen",
        ),
        pytest.param(
            [ttrpc(3, DATA, b"\xff"), asks(1)],
            [invalid(3, "StreamID 3 no longer active"), configure(1)],
            id="data on an unknown stream is refused",
        ),
        pytest.param(
            [asks(1), ttrpc(1, DATA, b"\xff", flags=1), asks(3)],
            [configure(1), configure(3)],
            id="data on an open unary stream is ignored",
        ),
        pytest.param(
            [ttrpc(7, 0), ttrpc(7, 4, b"\xff"), ttrpc(8, 255, b"\xff"), asks(1)],
            [configure(1)],
            id="frame types of the future are ignored and use no id",
        ),
        pytest.param(
            [ttrpc(7, RESPONSE, b"\xff"), asks(1)],
            [configure(1)],
            id="an unexpected response is ignored",
        ),
        pytest.param(
            [ttrpc(1, REQUEST, request("Configure"), flags=0xFF)],
            [configure(1)],
            id="flags are tolerated",
        ),
    ],
)
def test_stream_ids_and_frame_types(
    frames: list[bytes], events: list[Call | RejectedCall]
) -> None:
    assert server().receive_data(b"".join(frames)) == events


@pytest.mark.parametrize(
    ("data", "event"),
    [
        pytest.param(
            request("Configure", service="a.B"),
            RejectedCall(1, Code.UNIMPLEMENTED, "service a.B"),
            id="unknown service",
        ),
        pytest.param(
            request("Nothing"),
            RejectedCall(1, Code.UNIMPLEMENTED, "method Nothing"),
            id="unknown method",
        ),
        pytest.param(
            b"",
            RejectedCall(1, Code.UNIMPLEMENTED, "service "),
            id="an empty envelope names the empty service",
        ),
        pytest.param(
            request("Configure", timeout_nano=1_999_700_000),
            Call(1, PLUGIN_SERVICE, "Configure", b"", timeout=1.9997),
            id="a timeout in seconds",
        ),
        pytest.param(
            request("Configure", timeout_nano=-1_500_000_000),
            Call(1, PLUGIN_SERVICE, "Configure", b"", timeout=-1.5),
            id="a deadline that has passed is negative",
        ),
        pytest.param(
            request("Configure") + field(4, 0),
            Call(1, PLUGIN_SERVICE, "Configure", b"", timeout=None),
            id="a timeout of zero is no timeout",
        ),
        pytest.param(
            request("Configure", metadata=[("k", "1"), ("l", ""), ("k", "2")]),
            Call(
                1,
                PLUGIN_SERVICE,
                "Configure",
                b"",
                metadata=(("k", "1"), ("l", ""), ("k", "2")),
            ),
            id="metadata keeps its order and its repeated keys",
        ),
        pytest.param(
            request("Configure", b"\xff\x00\xfe") + field(77, b"\xff"),
            Call(1, PLUGIN_SERVICE, "Configure", b"\xff\x00\xfe"),
            id="payload is not looked at, unknown fields are skipped",
        ),
    ],
)
def test_envelopes(data: bytes, event: Call | RejectedCall) -> None:
    assert server().receive_data(ttrpc(1, REQUEST, data)) == [event]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xff\xff", id="an endless varint"),
        pytest.param(b"\x0a\x7fshort", id="a length beyond the end"),
        pytest.param(field(1, b"\xff\xfe"), id="a service that is no UTF-8"),
        pytest.param(b"\x07", id="a wire type that does not exist"),
    ],
)
def test_an_envelope_that_does_not_parse_is_refused_and_the_next_served(
    data: bytes,
) -> None:
    broken, following = server().receive_data(ttrpc(1, REQUEST, data) + asks(3))

    assert isinstance(broken, RejectedCall)
    assert (broken.stream_id, broken.code) == (1, Code.INVALID_ARGUMENT)
    assert broken.message.startswith("unmarshal request error: ")
    assert following == configure(3)


def test_replies_may_finish_in_any_order() -> None:
    serving = server()
    serving.receive_data(asks(1) + asks(3) + asks(5))

    assert [
        serving.reply(5, b"\xff"),
        serving.refuse(1, Code.NOT_FOUND, "gone"),
        serving.reply(3, b""),
    ] == [
        ttrpc(5, RESPONSE, field(2, b"\xff")),
        ttrpc(1, RESPONSE, status(5, "gone")),
        ttrpc(3, RESPONSE),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda to: to.reply(1, b""), id="by a reply"),
        pytest.param(lambda to: to.refuse(1, 2, "no"), id="by an error"),
    ],
)
def test_a_call_is_answered_once(answer: Callable[[ServerConnection], bytes]) -> None:
    serving = server()
    with pytest.raises(StreamNotOpen, match=r"^stream 1 has no open call$"):
        answer(serving)
    serving.receive_data(asks(1))
    answer(serving)

    with pytest.raises(StreamNotOpen, match=r"^stream 1 has no open call$"):
        answer(serving)


def test_an_id_used_twice_gets_two_answers() -> None:
    serving = server()
    serving.receive_data(asks(1) + asks(1))

    assert serving.refuse(1, 3, REUSED) == ttrpc(1, RESPONSE, status(3, REUSED))
    assert serving.reply(1, b"\xff") == ttrpc(1, RESPONSE, field(2, b"\xff"))
    with pytest.raises(StreamNotOpen):
        serving.reply(1, b"")


def test_a_settled_stream_is_no_longer_active() -> None:
    serving = server()
    serving.receive_data(asks(1))
    serving.reply(1, b"")

    assert serving.receive_data(ttrpc(1, DATA)) == [
        invalid(1, "StreamID 1 no longer active")
    ]


def test_a_peer_that_never_waits_is_held_back_and_let_in_again() -> None:
    serving = server()
    ids = range(1, 2 * MAX_OPEN_CALLS + 1, 2)
    over = 2 * MAX_OPEN_CALLS + 1

    assert serving.receive_data(b"".join(map(asks, ids))) == list(map(configure, ids))
    assert serving.receive_data(asks(over)) == [
        RejectedCall(
            over,
            Code.RESOURCE_EXHAUSTED,
            f"more than {MAX_OPEN_CALLS} calls wait for an answer",
        )
    ]
    serving.refuse(over, Code.RESOURCE_EXHAUSTED, "")
    serving.reply(1, b"")
    assert serving.receive_data(asks(over + 2)) == [configure(over + 2)]


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        pytest.param("caf\u00e9 \u2713", "caf\u00e9 \u2713", id="UTF-8 stays"),
        pytest.param(
            "no file b\udcff", "no file b?", id="undecodable file names do not raise"
        ),
        pytest.param("\u00e9" * 5_000_000, "\u00e9" * 32768, id="a novel is cut"),
        pytest.param(
            "a" + "\u00e9" * 32768, "a" + "\u00e9" * 32767, id="no character is halved"
        ),
    ],
)
def test_any_error_text_can_be_sent(message: str, sent: str) -> None:
    serving = server()
    serving.receive_data(asks(1))

    assert serving.refuse(1, Code.UNKNOWN, message) == ttrpc(
        1, RESPONSE, status(2, sent)
    )


def test_the_refusal_of_a_huge_service_name_can_be_sent() -> None:
    serving = server()
    data = request("Configure", service="\u00e9" * 5_000_000)
    (event,) = serving.receive_data(ttrpc(1, REQUEST, data))

    assert isinstance(event, RejectedCall)
    assert len(serving.refuse(1, event.code, event.message)) < 1 << 17


def test_success_is_no_error() -> None:
    serving = server()
    serving.receive_data(asks(1))

    with pytest.raises(ValueError, match=r"^0 is no error$"):
        serving.refuse(1, Code.OK, "fine")
    assert serving.reply(1, b"") == ttrpc(1, RESPONSE)
