"""The hash XXH64, for fingerprints of pods.

A library would be a compiled dependency for some hundred short names a minute, which
take a millisecond here.

Source:
    The xxHash specification, version 0.1.1, "XXH64 algorithm description".
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_STRIPE: Final = struct.Struct("<4Q")
_LANE: Final = struct.Struct("<Q")
_HALF: Final = struct.Struct("<I")

_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxhash64(data: bytes, seed: int = 0) -> int:
    """Return the hash of *data*."""
    whole = len(data) - len(data) % _STRIPE.size
    if whole:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        for stripe in _STRIPE.iter_unpack(data[:whole]):
            lanes = [_round(*pair) for pair in zip(lanes, stripe, strict=True)]
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        found = sum(_rotate(lane, bits) for lane, bits in turns)
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = seed + _P5
    return _mixed(_with_rest(found + len(data), data[whole:]))


def _with_rest(found: int, rest: bytes) -> int:
    """Add the bytes after the last stripe."""
    lanes = len(rest) - len(rest) % _LANE.size
    for (lane,) in _LANE.iter_unpack(rest[:lanes]):
        found = _rotate((found ^ _round(0, lane)) & _MASK, 27) * _P1 + _P4
    rest = rest[lanes:]
    if len(rest) >= _HALF.size:
        (half,) = _HALF.unpack_from(rest)
        found = _rotate((found ^ half * _P1) & _MASK, 23) * _P2 + _P3
        rest = rest[_HALF.size :]
    for byte in rest:
        found = _rotate((found ^ byte * _P5) & _MASK, 11) * _P1
    return found & _MASK


def _mixed(found: int) -> int:
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def _round(lane: int, value: int) -> int:
    return _rotate((lane + value * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
