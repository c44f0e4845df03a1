"""A second reader of the wire: all bytes at once, no state, no speed."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from nri_proto.frames import Frame
from tests.wire.spelled import DATA, REQUEST, RESPONSE, SIXTEEN_MIB

LONGEST_TRUNK_FRAME = SIXTEEN_MIB + 10


@attrs.frozen
class TooLong:
    """What a stream must be refused for."""

    connection: int
    size: int


def taken_apart(
    stream: bytes, open_connections: Collection[int]
) -> dict[int, list[tuple[int, bytes]]] | TooLong:
    """Give each open connection its bytes, in parts with their place in the stream."""
    parts: dict[int, list[tuple[int, bytes]]] = {id_: [] for id_ in open_connections}
    at = 0
    while at + 8 <= len(stream):
        connection = int.from_bytes(stream[at : at + 4])
        size = int.from_bytes(stream[at + 4 : at + 8])
        at += 8
        if connection in parts:
            if size > LONGEST_TRUNK_FRAME:
                return TooLong(connection, size)
            parts[connection].append((at, stream[at : at + size]))
        at += size
    return parts


def framed(data: bytes) -> list[tuple[int, Frame]]:
    """Cut one connection's bytes into frames, each with the place of its end."""
    frames, at = [], 0
    while at + 10 <= len(data):
        size, stream_id = (int.from_bytes(data[at + n : at + n + 4]) for n in (0, 4))
        kind = data[at + 8]
        body = data[at + 10 : at + 10 + size]
        if size > SIXTEEN_MIB:
            frames.append((at + 10, Frame(stream_id, kind, None, size)))
        elif len(body) == size:
            frames.append((at + 10 + size, Frame(stream_id, kind, body, size)))
        at += 10 + size
    return frames


def in_order_of_arrival(
    stream: bytes, open_connections: Collection[int]
) -> list[tuple[int, Frame]] | TooLong:
    """List the frames of all connections as their last bytes come in."""
    parts = taken_apart(stream, open_connections)
    if isinstance(parts, TooLong):
        return parts
    arrivals = []
    for connection, pieces in parts.items():
        data = b"".join(piece for _, piece in pieces)
        places = [place + n for place, piece in pieces for n in range(len(piece))]
        arrivals += [
            (places[end - 1], connection, frame) for end, frame in framed(data)
        ]
    return [
        (connection, frame) for _, connection, frame in sorted(arrivals, key=_place)
    ]


def _place(arrival: tuple[int, int, Frame]) -> int:
    return arrival[0]


def refused(frames: list[Frame], index: int, owed: Collection[int]) -> int | None:
    """Return the code that a frame's place in its connection earns it, if any.

    Args:
        frames: All frames that a server got.
        index: Which one is judged.
        owed: Streams on which an answer is due.
    """
    frame = frames[index]
    earlier = (
        other.stream_id
        for other in frames[:index]
        if other.type == REQUEST and other.stream_id % 2
    )
    if frame.type == DATA:
        return None if frame.stream_id in owed else 3
    if frame.stream_id % 2 == 0 or any(id_ >= frame.stream_id for id_ in earlier):
        return 3
    return 8 if frame.data is None else None


def ends_call(frame: Frame, waiting: Collection[int]) -> int | None:
    """Return the code with which a frame ends one of our calls without being read.

    Returns:
        None if the envelope decides, -1 for a stray.
    """
    if frame.stream_id not in waiting:
        return -1
    if frame.type != RESPONSE:
        return 13
    return 8 if frame.data is None else None
