"""Any bytes, cut anywhere, mean the same or are refused alike."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import event, given
from hypothesis import strategies as st

from nri_proto import (
    PLUGIN_METHODS,
    RUNTIME_METHODS,
    Call,
    CallReply,
    RejectedCall,
    RemoteProtocolError,
    Stray,
    Trunk,
    TrunkFrameTooLarge,
)
from nri_proto._gen import ttrpc_pb2
from nri_proto.frames import Frame, FrameReader
from nri_proto.mux import Demultiplexer
from tests.wire.oracle import (
    TooLong,
    ends_call,
    framed,
    in_order_of_arrival,
    refused,
    taken_apart,
)
from tests.wire.spelled import PLUGIN, PLUGIN_SERVICE, RUNTIME
from tests.wire.streams import connections, deliveries, noise, trunks, unhurried

Outcome: TypeAlias = (
    list[Call | RejectedCall | CallReply | Stray] | tuple[str, int, int]
)

OUR_CALLS = (1, 3, 5, 7)


def trunk_of_plugin() -> Trunk:
    trunk = Trunk.of_plugin()
    for _ in OUR_CALLS:
        trunk.call(RUNTIME_METHODS["UpdateContainers"], b"")
    return trunk


def outcome(trunk: Trunk, chunks: list[bytes]) -> Outcome:
    """All events, or what the stream was refused for."""
    events: list[Call | RejectedCall | CallReply | Stray] = []
    try:
        for chunk in chunks:
            events += trunk.receive_data(chunk)
    except TrunkFrameTooLarge as error:
        return "too large", error.connection, error.size
    return events


def test_refusing_a_stream_blames_the_peer() -> None:
    assert issubclass(TrunkFrameTooLarge, RemoteProtocolError)


@unhurried
@given(st.data())
def test_bytes_mean_the_same_however_they_are_cut(data: st.DataObject) -> None:
    stream = data.draw(trunks() | noise | st.binary(max_size=200))
    whole = outcome(trunk_of_plugin(), [stream])

    cut = outcome(trunk_of_plugin(), data.draw(deliveries(stream)))

    event("refused" if isinstance(whole, tuple) else "parsed")
    assert cut == whole


@unhurried
@given(st.data())
def test_each_connection_gets_its_bytes_and_no_others(data: st.DataObject) -> None:
    stream = data.draw(trunks())
    chunks = data.draw(deliveries(stream))
    expected = taken_apart(stream, (PLUGIN, RUNTIME))
    demultiplexer = Demultiplexer((PLUGIN, RUNTIME))
    received: dict[int, bytes] = {PLUGIN: b"", RUNTIME: b""}
    got: dict[int, bytes] | TooLong = received

    try:
        for chunk in chunks:
            for connection, piece in demultiplexer.receive_data(chunk):
                received[connection] += piece
    except TrunkFrameTooLarge as error:
        got = TooLong(error.connection, error.size)

    if not isinstance(expected, TooLong):
        assert got == {
            connection: b"".join(piece for _, piece in parts)
            for connection, parts in expected.items()
        }
    else:
        assert got == expected


@unhurried
@given(st.data())
def test_a_connections_bytes_come_out_as_its_frames(data: st.DataObject) -> None:
    stream = data.draw(connections())
    reader = FrameReader()

    frames = [
        frame
        for chunk in data.draw(deliveries(stream))
        for frame in reader.receive_data(chunk)
    ]

    assert frames == [frame for _, frame in framed(stream)]


def read_request(frame: Frame) -> Call | tuple[int, int]:
    try:
        asked = ttrpc_pb2.Request.FromString(frame.data or b"")
    except Exception:  # noqa: BLE001  whatever the parser dislikes is refused
        return frame.stream_id, 3
    if asked.service != PLUGIN_SERVICE or asked.method not in PLUGIN_METHODS:
        return frame.stream_id, 12
    return Call(
        frame.stream_id,
        asked.service,
        asked.method,
        asked.payload,
        asked.timeout_nano / 1e9 if asked.timeout_nano else None,
        tuple((pair.key, pair.value) for pair in asked.metadata),
    )


def read_response(frame: Frame) -> tuple[int, int, bytes]:
    try:
        reply = ttrpc_pb2.Response.FromString(frame.data or b"")
    except Exception:  # noqa: BLE001  whatever the parser dislikes is refused
        return frame.stream_id, 13, b""
    code = reply.status.code
    return frame.stream_id, code, b"" if code else reply.payload


def expected_events(arrivals: list[tuple[int, Frame]]) -> list[object]:
    """Judge frames one by one: calls whole, all else as ids and codes."""
    events: list[object] = []
    served: list[Frame] = []
    owed: set[int] = set()
    waiting = set(OUR_CALLS)
    for connection, frame in arrivals:
        if connection == RUNTIME:
            code = ends_call(frame, waiting)
            waiting.discard(frame.stream_id)
            if code is None:
                events.append(read_response(frame))
            else:
                events.append((frame.stream_id, code, b""))
            continue
        served.append(frame)
        if frame.type not in (1, 3):
            continue
        code = refused(served, len(served) - 1, owed)
        if code is not None:
            events.append((frame.stream_id, code))
        elif frame.type == 1:
            events.append(read_request(frame))
        else:
            continue
        owed.add(frame.stream_id)
    return events


def as_judged(what: Call | RejectedCall | CallReply | Stray) -> object:
    match what:
        case RejectedCall(stream_id, code):
            return stream_id, code
        case CallReply(stream_id, code, _, payload):
            return stream_id, code, payload
        case Stray(stream_id):
            return stream_id, -1, b""
    return what


@unhurried
@given(trunks())
def test_every_frame_is_judged_as_the_rules_say(stream: bytes) -> None:
    arrivals = in_order_of_arrival(stream, (PLUGIN, RUNTIME))
    got = outcome(trunk_of_plugin(), [stream])

    if isinstance(arrivals, TooLong):
        assert got == ("too large", arrivals.connection, arrivals.size)
    else:
        assert isinstance(got, list)
        for what in got:
            event(type(what).__name__)
        assert [as_judged(what) for what in got] == expected_events(arrivals)
