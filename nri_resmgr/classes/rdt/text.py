"""Shares in the short forms of goresctrl's files: ``60%``, ``0xff0``, ``1000MBps``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from nri_resmgr.classes.rdt.errors import BadShare
from nri_resmgr.classes.rdt.settings import (
    ALL,
    BandwidthAllocation,
    BitMask,
    CacheShare,
    Percent,
    PercentRange,
)

# cbm_mask has 32 bits; goresctrl's masks have 64.
_MOST_BITS: Final = 64
# An id has 32 bits in the kernel. The length of a range is its number of ids.
_MOST_ID: Final = (1 << 32) - 1
_LONGEST_RANGE: Final = 4096
_MOST_MBPS: Final = (1 << 32) - 1

_FORMS: Final = "expected a share such as 60%, 20-60%, 0-5 or 0xff0"


def parse_cache_share(text: str) -> CacheShare:
    """Read a share of a cache.

    >>> parse_cache_share("60%"), parse_cache_share("20-60%")
    (Percent(percent=60), PercentRange(low=20, high=60))
    >>> parse_cache_share("4-7") == parse_cache_share("0xf0")
    True

    Raises:
        BadShare: The text has none of the four forms, or is over 100%.
    """
    if (found := re.fullmatch(r"(\d{1,3})%", text, re.ASCII)) is not None:
        return Percent(_percent(text, found[1]))
    if (found := re.fullmatch(r"(\d{1,3})-(\d{1,3})%", text, re.ASCII)) is not None:
        low, high = _percent(text, found[1]), _percent(text, found[2])
        if low > high:
            raise BadShare(text, "the range ends below its start")
        return PercentRange(low, high)
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text, re.ASCII):
        return BitMask(int(text, 16))
    if not re.fullmatch(r"[\d,-]+", text, re.ASCII):
        raise BadShare(text, _FORMS)
    return BitMask(sum(1 << bit for bit in _numbers(text, _MOST_BITS - 1)))


def parse_cache_ids(text: str) -> tuple[int, ...]:
    """Read the key of a map: ``all``, which gives `ALL`, or ids.

    >>> parse_cache_ids("0,2-3"), parse_cache_ids("all")
    ((0, 2, 3), (-1,))

    Raises:
        BadShare: The text is no list of ids, or has one twice.
    """
    return (ALL,) if text == "all" else _numbers(text, _MOST_ID)


def parse_bandwidth(entries: Iterable[object]) -> BandwidthAllocation:
    """Read a list of bandwidths, one for each unit that a machine may use.

    >>> parse_bandwidth(["50%", "1000MBps"])
    BandwidthAllocation(percent=50, mbps=1000, unknown=())

    Raises:
        BadShare: A number is invalid or too large, or a unit comes twice.
    """
    percent: int | None = None
    mbps: int | None = None
    unknown = []
    for entry in entries:
        text = str(entry)
        if text.endswith("%"):
            percent = _percent(text, _once(percent, text, "%"))
        elif text.endswith("MBps"):
            mbps = _number(text, _once(mbps, text, "MBps"), _MOST_MBPS)
        else:
            unknown.append(text)
    return BandwidthAllocation(percent, mbps, tuple(unknown))


def _once(before: int | None, text: str, unit: str) -> str:
    if before is not None:
        raise BadShare(text, f"there is another one in {unit}")
    return text.removesuffix(unit)


def _percent(text: str, digits: str) -> int:
    return _number(text, digits, 100)


def _numbers(text: str, most: int) -> tuple[int, ...]:
    """Read ``0,2-3``; a range has to end above its start, as in goresctrl."""
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low = high = _number(text, first, most)
        if dash and (high := _number(text, last, most)) <= low:
            raise BadShare(text, f"the range {part} does not end above its start")
        if high - low >= _LONGEST_RANGE:
            raise BadShare(text, f"the range {part} is over {_LONGEST_RANGE} long")
        for number in range(low, high + 1):
            if number in found:
                raise BadShare(text, f"{number} comes twice")
            found[number] = None
    return tuple(found)


def _number(text: str, digits: str, most: int) -> int:
    if not re.fullmatch(r"\d+", digits, re.ASCII):
        raise BadShare(text, f"{digits!r} is not a number")
    # Converting thousands of digits would take long.
    if len(digits) > len(str(_MOST_ID)) or int(digits) > most:
        raise BadShare(text, f"{digits[:20]} is over {most}")
    return int(digits)
