"""A great many random frames, each judged as a naive reader would."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import settings

from nri_proto import Call, RejectedCall, Stray, Trunk
from tests.wire.oracle import TooLong, in_order_of_arrival
from tests.wire.spelled import (
    DATA,
    PLUGIN,
    REQUEST,
    RESPONSE,
    RUNTIME,
    request,
    trunk,
    ttrpc,
)

# 200,000, and ten million in `make fuzz-laws`.
FRAMES = 2_000 * settings().max_examples
BLOCK = 500  # frames that the naive reader takes at once
SEED = 20_260_801

BODIES = (
    b"",
    b"\xff\xff\xff",
    request("Configure"),
    request("Synchronize", b"\xff" * 30, timeout_nano=-1),
    request("Nothing"),
    request("Shutdown", service="a.B"),
)
KINDS = (REQUEST, REQUEST, REQUEST, RESPONSE, DATA, 0, 4, 255)


def random_frames(choose: random.Random, count: int, first_id: int) -> bytes:
    """Make frames of both connections, some in parts, some of unknown streams."""
    stream = bytearray()
    stream_id = first_id
    for nth in range(count):
        stream_id += choose.choice((0, 1, 2, 2, 2, 4))
        kind = choose.choice(KINDS)
        # Whether data is refused depends on when its stream's call was answered:
        # data comes on streams of its own here.
        named = stream_id if kind != DATA else (1 << 31) + first_id + nth
        message = ttrpc(named, kind, choose.choice(BODIES))
        connection = PLUGIN if choose.random() < 0.8 else RUNTIME
        cut = choose.randrange(4 * len(message))
        if cut < len(message):
            stream += trunk(connection, message[:cut]) + trunk(9, b"\xff" * (cut % 5))
            message = message[cut:]
        stream += trunk(connection, message)
    return bytes(stream)


def chunks(choose: random.Random, stream: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(stream):
        size = choose.choice((1, 7, 100, 5000))
        yield stream[at : at + size]
        at += size


def answer(end: Trunk, happened: Call | RejectedCall | Stray) -> None:
    if isinstance(happened, Call):
        end.reply(happened.stream_id, b"")
    elif isinstance(happened, RejectedCall):
        end.refuse(happened.stream_id, happened.code, happened.message)


def judged(stream: bytes, last_id: int) -> tuple[list[tuple[type, int]], int]:
    """Name the events of a block whose calls are all answered at once."""
    arrivals = in_order_of_arrival(stream, (PLUGIN, RUNTIME))
    assert not isinstance(arrivals, TooLong)
    events: list[tuple[type, int]] = []
    for connection, frame in arrivals:
        if connection == RUNTIME:
            events.append((Stray, frame.stream_id))
        elif frame.type == DATA:
            events.append((RejectedCall, frame.stream_id))
        elif frame.type == REQUEST:
            legal = frame.stream_id % 2 == 1 and frame.stream_id > last_id
            served = legal and frame.data in BODIES[2:4]
            last_id = frame.stream_id if legal else last_id
            events.append((Call if served else RejectedCall, frame.stream_id))
    return events, last_id


def answered_at_once(
    end: Trunk, pieces: Iterator[bytes], seen: list[tuple[type, int]]
) -> None:
    for piece in pieces:
        for happened in end.receive_data(piece):
            answer(end, happened)  # type: ignore[arg-type]  # we made no call: no Reply
            seen.append((type(happened), happened.stream_id))


@pytest.mark.slow
def test_random_frames_are_judged_as_the_rules_say() -> None:
    print(f"seed {SEED}")
    choose = random.Random(SEED)  # noqa: S311  repeatable, no secret
    end = Trunk.of_plugin()
    last_id = 0

    for block in range(FRAMES // BLOCK):
        stream = random_frames(choose, BLOCK, first_id=block * 2 * BLOCK)
        expected, last_id = judged(stream, last_id)
        seen: list[tuple[type, int]] = []
        answered_at_once(end, chunks(choose, stream), seen)

        assert seen == expected
