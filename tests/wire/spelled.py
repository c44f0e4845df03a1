"""The wire spelled by hand, so that no test borrows the code it judges."""

from __future__ import annotations

from collections.abc import Iterable

PLUGIN, RUNTIME = 1, 2  # connection ids
REQUEST, RESPONSE, DATA = 1, 2, 3  # frame types
PLUGIN_SERVICE = "nri.pkg.api.v1alpha1.Plugin"
RUNTIME_SERVICE = "nri.pkg.api.v1alpha1.Runtime"

FOUR_MIB = 4 << 20
SIXTEEN_MIB = 16 << 20


def varint(number: int) -> bytes:
    """Encode as protobuf does; a negative number takes ten bytes."""
    number &= (1 << 64) - 1
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def field(number: int, value: int | bytes | str) -> bytes:
    """Encode one protobuf field: integers as varints, all else with a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def ttrpc(stream_id: int, kind: int, data: bytes = b"", flags: int = 0) -> bytes:
    """Build a ttRPC frame."""
    header = len(data).to_bytes(4) + stream_id.to_bytes(4) + bytes((kind, flags))
    return header + data


def trunk(connection: int, payload: bytes) -> bytes:
    """Build a frame of the multiplexer."""
    return connection.to_bytes(4) + len(payload).to_bytes(4) + payload


def request(
    method: str,
    payload: bytes = b"",
    *,
    service: str = PLUGIN_SERVICE,
    timeout_nano: int = 0,
    metadata: Iterable[tuple[str, str]] = (),
) -> bytes:
    """Build a request envelope."""
    pairs = (_fields(key, value) for key, value in metadata)
    return _fields(service, method, payload, timeout_nano) + b"".join(
        field(5, pair) for pair in pairs
    )


def _fields(*values: int | bytes | str) -> bytes:
    # What is empty or zero is left out: proto3.
    return b"".join(field(n, value) for n, value in enumerate(values, 1) if value)


def status(code: int, message: str) -> bytes:
    """Build a response envelope with an error."""
    return field(1, field(1, code) + field(2, message))


def trunk_parts(stream: bytes) -> list[tuple[int, bytes]]:
    """Take a whole number of multiplexer frames apart."""
    parts, at = [], 0
    while at < len(stream):
        size = int.from_bytes(stream[at + 4 : at + 8])
        end = at + 8 + size
        assert end <= len(stream), "a frame is cut off"
        parts.append((int.from_bytes(stream[at : at + 4]), stream[at + 8 : end]))
        at = end
    return parts
