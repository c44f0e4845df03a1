"""How a message is cut for the trunk: Go's reader panics at anything else."""

from __future__ import annotations

import pytest

from nri_proto import (
    PLUGIN_METHODS,
    RUNTIME_METHODS,
    Call,
    CallReply,
    Code,
    RejectedCall,
    Stray,
    Trunk,
)
from nri_proto.frames import MAX_DATA_IN
from nri_proto.mux import Demultiplexer, trunk_frames
from tests.wire.spelled import (
    FOUR_MIB,
    PLUGIN,
    PLUGIN_SERVICE,
    REQUEST,
    RESPONSE,
    RUNTIME,
    request,
    trunk,
    trunk_parts,
    ttrpc,
)
from tests.wire.streams import oversize_header

TOO_LARGE = RejectedCall(
    1,
    Code.RESOURCE_EXHAUSTED,
    f"message length {MAX_DATA_IN + 1} exceed maximum message size of {MAX_DATA_IN}",
)
CONFIGURE = PLUGIN_METHODS["Configure"]
UPDATE = RUNTIME_METHODS["UpdateContainers"]


@pytest.mark.parametrize(
    ("size", "frames"),
    [
        pytest.param(10, [10], id="a header alone is one frame"),
        pytest.param(4095, [4095], id="one byte less than the reader's buffer"),
        pytest.param(4096, [4096], id="exactly the reader's buffer"),
        pytest.param(4097, [4096, 1], id="one byte more than the reader's buffer"),
        pytest.param(5000, [4096, 904], id="a little more than the reader's buffer"),
        pytest.param(100 << 10, [4096, (100 << 10) - 4096], id="100 KiB"),
        pytest.param(
            FOUR_MIB + 10, [4096, FOUR_MIB + 10 - 4096], id="the largest message"
        ),
    ],
)
def test_a_message_is_one_frame_or_two(size: int, frames: list[int]) -> None:
    message = (b"\xff\x01\xfe" * (size // 3 + 1))[:size]

    parts = trunk_parts(trunk_frames(PLUGIN, message))

    assert [(connection, len(part)) for connection, part in parts] == [
        (PLUGIN, length) for length in frames
    ]
    assert b"".join(part for _, part in parts) == message


@pytest.mark.parametrize("size", [0, 4070, 4096, 5000, 100_000])
def test_calls_and_replies_are_cut_alike(size: int) -> None:
    plugin, runtime = Trunk.of_plugin(), Trunk.of_runtime()
    _, asked = runtime.call(CONFIGURE, b"\xff" * size)
    plugin.receive_data(asked)

    answered = plugin.reply(1, b"\xfe" * size)

    for sent, kind in ((asked, REQUEST), (answered, RESPONSE)):
        parts = trunk_parts(sent)
        message = b"".join(part for _, part in parts)
        assert {connection for connection, _ in parts} == {PLUGIN}
        assert [len(part) for _, part in parts] == (
            [len(message)] if len(message) <= 4096 else [4096, len(message) - 4096]
        )
        assert int.from_bytes(message[:4]) == len(message) - 10
        assert message[8] == kind


def test_no_frame_mixes_messages_however_replies_and_calls_mingle() -> None:
    plugin, runtime = Trunk.of_plugin(), Trunk.of_runtime()
    asked = [runtime.call(CONFIGURE, b"\xff" * (7 * n)) for n in range(1000)]
    plugin.receive_data(b"".join(sent for _, sent in asked))
    writes = []

    for nth, (stream_id, _) in enumerate(reversed(asked)):
        writes.append(plugin.reply(stream_id, b"\xfe" * (11 * nth)))
        writes.append(plugin.call(UPDATE, b"\xfd" * (5 * nth))[1])
    written = b"".join(writes)

    messages: list[tuple[int, int]] = []
    rest = 0  # of a message whose first frame is behind us
    for connection, part in trunk_parts(written):
        if rest:
            assert (connection, len(part)) == (messages[-1][0], rest)
            rest = 0
            continue
        size, stream_id = int.from_bytes(part[:4]), int.from_bytes(part[4:8])
        messages.append((connection, stream_id))
        assert len(part) == min(10 + size, 4096)
        rest = 10 + size - len(part)
    replies = [(PLUGIN, stream_id) for stream_id, _ in reversed(asked)]
    calls = [(RUNTIME, 2 * n + 1) for n in range(1000)]
    assert messages == [
        message for pair in zip(replies, calls, strict=True) for message in pair
    ]
    assert len(runtime.receive_data(written)) == 2000


@pytest.mark.parametrize(
    ("parts", "pieces"),
    [
        pytest.param([(1, b"")], [], id="a zero-length frame is no data"),
        pytest.param(
            [(1, b"ab"), (1, b""), (1, b"c")],
            [(1, b"ab"), (1, b"c")],
            id="a zero-length frame inside a message",
        ),
        pytest.param(
            [(7, b"lost"), (2, b"kept")],
            [(2, b"kept")],
            id="an unknown id is dropped",
        ),
        pytest.param(
            [(0, b"lost"), (0xFFFFFFFF, b"lost"), (1, b"kept")],
            [(1, b"kept")],
            id="the reserved id and the largest one are dropped",
        ),
        pytest.param(
            [(1, b"a"), (2, b"b"), (1, b"c")],
            [(1, b"a"), (2, b"b"), (1, b"c")],
            id="connections may alternate",
        ),
    ],
)
def test_the_trunk_comes_apart(
    parts: list[tuple[int, bytes]], pieces: list[tuple[int, bytes]]
) -> None:
    stream = b"".join(trunk(*part) for part in parts)

    assert Demultiplexer((1, 2)).receive_data(stream) == pieces


def test_a_message_may_come_in_frames_of_one_byte_between_empty_ones() -> None:
    message = ttrpc(1, REQUEST, request("Configure", b"\xff\xff"))
    stream = b"".join(
        trunk(PLUGIN, b"") + trunk(PLUGIN, bytes((byte,))) + trunk(9, b"\xff" * 3)
        for byte in message
    )

    events = Trunk.of_plugin().receive_data(stream)

    assert events == [Call(1, CONFIGURE.service, "Configure", b"\xff\xff")]


def test_a_reply_and_a_call_may_be_cut_into_each_other() -> None:
    plugin = Trunk.of_plugin()
    plugin.call(UPDATE, b"")
    call = ttrpc(1, REQUEST, request("Shutdown"))
    stream = (
        trunk(PLUGIN, call[:12])
        + trunk(RUNTIME, ttrpc(1, RESPONSE)[:9])
        + trunk(PLUGIN, call[12:])
        + trunk(RUNTIME, ttrpc(1, RESPONSE)[9:])
    )

    events = plugin.receive_data(stream)

    assert events == [Call(1, CONFIGURE.service, "Shutdown", b""), CallReply(1, 0)]


def test_a_lost_trunk_abandons_our_calls_and_not_the_peers() -> None:
    plugin = Trunk.of_plugin()
    for _ in range(3):
        plugin.call(UPDATE, b"")
    plugin.receive_data(trunk(PLUGIN, ttrpc(7, REQUEST, request("Shutdown"))))
    plugin.receive_data(trunk(RUNTIME, ttrpc(3, RESPONSE)))

    assert plugin.abandon() == (1, 5)
    assert plugin.receive_data(trunk(RUNTIME, ttrpc(1, RESPONSE))) == [Stray(1)]


def asks(stream_id: int, payload: bytes) -> bytes:
    return ttrpc(stream_id, REQUEST, request("Configure", payload))


def configure(stream_id: int, payload: bytes) -> Call:
    return Call(stream_id, PLUGIN_SERVICE, "Configure", payload)


def cut(data: bytes, last: int) -> list[bytes]:
    """Cut off so many bytes at the end."""
    return [data[:-last], data[-last:]]


LOOKALIKE = asks(3, b"")


@pytest.mark.parametrize(
    ("reads", "events"),
    [
        pytest.param(
            [trunk(PLUGIN, asks(1, b"")), trunk(PLUGIN, LOOKALIKE)],
            [[configure(1, b"")], [configure(3, b"")]],
            id="between two frames it is one",
        ),
        pytest.param(
            cut(trunk(PLUGIN, asks(1, trunk(PLUGIN, LOOKALIKE))), len(LOOKALIKE) + 8),
            [[], [configure(1, trunk(PLUGIN, LOOKALIKE))]],
            id="in a frame of the trunk it is payload",
        ),
        pytest.param(
            [trunk(PLUGIN, part) for part in cut(asks(1, LOOKALIKE), len(LOOKALIKE))],
            [[], [configure(1, LOOKALIKE)]],
            id="in a message of two frames it is payload",
        ),
        pytest.param(
            cut(trunk(7, trunk(PLUGIN, LOOKALIKE)), len(LOOKALIKE) + 8),
            [[], []],
            id="on an unknown connection it is discarded",
        ),
        pytest.param(
            [trunk(PLUGIN, oversize_header(1, REQUEST, 1)), trunk(PLUGIN, LOOKALIKE)],
            [[TOO_LARGE], []],
            id="in a message that is too large it is thrown away",
        ),
        pytest.param(
            [trunk(RUNTIME, LOOKALIKE)],
            [[Stray(3)]],
            id="a plugin is asked on one connection",
        ),
    ],
)
def test_a_whole_request_within_a_frame_is_not_taken_for_a_message(
    reads: list[bytes], events: list[list[Call | RejectedCall | Stray]]
) -> None:
    plugin = Trunk.of_plugin()

    assert [plugin.receive_data(data) for data in reads] == events
