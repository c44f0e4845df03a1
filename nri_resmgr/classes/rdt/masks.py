"""Bit masks of a cache: divided among partitions, narrowed for classes."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.classes.rdt.capabilities import PERCENT_MAXIMUM, RdtCache
from nri_resmgr.classes.rdt.errors import MaskRefused
from nri_resmgr.classes.rdt.settings import BitMask, CacheShare, Percent, PercentRange


def width_of(mask: int) -> int:
    """Return the number of one bits from bit 0 up to the first zero.

    >>> width_of(0xFFF)
    12
    """
    return (mask ^ (mask + 1)).bit_length() - 1


def min_bits_of(cache: RdtCache) -> int:
    """Return the smallest number of bits of a share.

    AMD accepts empty masks, but a group with one could use nothing of the cache, which
    a percent never means.
    """
    return max(cache.min_bits, 1)


def divide(shares: Mapping[str, int], width: int, min_bits: int) -> dict[str, int]:
    """Return adjacent masks of partitions, from bit 0 up, in the order of their names.

    >>> {name: hex(bits) for name, bits in divide({"a": 75, "b": 25}, 20, 1).items()}
    {'a': '0x7fff', 'b': '0xf8000'}

    Raises:
        MaskRefused: The shares are over 100% together, or all 0, or need more bits than
            the cache has.

    Source:
        goresctrl, ``pkg/rdt/config.go``: the same steps on whole numbers. It refuses
        shares if rounding one up leaves too few bits for a larger one.
    """
    total = sum(shares.values())
    if total > PERCENT_MAXIMUM:
        raise MaskRefused(f"{total}% together is over 100%")
    if total == 0:
        raise MaskRefused("all of them ask for 0%")
    widths = _widths(shares, total, total * width // 100, min_bits)
    masks: dict[str, int] = {}
    start = 0
    for name in sorted(shares):
        masks[name] = ((1 << widths[name]) - 1) << start
        start += widths[name]
    return masks


def _widths(
    shares: Mapping[str, int], total: int, bits: int, min_bits: int
) -> dict[str, int]:
    """Divide *bits* bits, the smallest share first: it may have to be rounded up."""
    least = min_bits * len(shares)
    if bits < least:
        raise MaskRefused(
            f"{total}% together is {bits} bits: less than {min_bits} for each partition"
        )
    widths: dict[str, int] = {}
    left = bits
    for name in sorted(shares, key=lambda name: (shares[name], name)):
        least -= min_bits  # for the following partitions
        # The percent that the remaining bits stand for, rounded down.
        percent_left = left * total // bits
        wide = max(shares[name] * left // percent_left, min_bits)
        widths[name] = min(wide, left - least) if least else left
        left -= widths[name]
    return widths


def narrow(base: int, share: CacheShare, min_bits: int) -> int:
    """Return the part of a partition's mask that a class gets.

    Percents count the set bits, so that a mask with holes has shares as well.

    >>> hex(narrow(0xFF00, PercentRange(99, 100), 4))
    '0xf000'

    Bits of a share are counted from the lowest of the mask; percents are widened to
    *min_bits* bits.

    Raises:
        MaskRefused: The share is empty or not within the mask.
    """
    match share:
        case BitMask(bits):
            mask = bits << ((base & -base).bit_length() - 1)
            if mask & ~base:
                raise MaskRefused(
                    f"mask {bits:#x} gives {mask:#x}, which is not within the"
                    f" partition's {base:#x}"
                )
            return mask
        case Percent(percent):
            return _range_of(base, 1, percent, min_bits)
        case PercentRange(low, high):
            return _range_of(base, max(low, 1), high, min_bits)


def _range_of(base: int, low: int, high: int, min_bits: int) -> int:
    if not low <= high <= PERCENT_MAXIMUM:
        raise MaskRefused(f"{high}% is no share, expected 1% to 100%")
    places = [bit for bit in range(base.bit_length()) if base >> bit & 1]
    count = len(places)
    # Percents count from 1, so that 100% is within.
    first, last = (low - 1) * count // 100, (high - 1) * count // 100
    missing = max(min_bits - (last - first + 1), 0)
    down = min(missing, first)
    first, last = first - down, last + missing - down
    if last >= count:
        raise MaskRefused(f"the partition has {count} bits, less than {min_bits}")
    return sum(1 << place for place in places[first : last + 1])


def check_mask(mask: int, cache: RdtCache) -> int:
    """Return a mask that the kernel accepts.

    Raises:
        MaskRefused: It is empty, too wide, too narrow, or has holes.

    Source:
        Linux ``cbm_validate``: with holes, the lowest run needs ``min_cbm_bits``.
    """
    if not mask:
        raise MaskRefused("the mask is empty")
    if mask & ~cache.mask:
        raise MaskRefused(f"mask {mask:#x} is not within cbm_mask {cache.mask:#x}")
    lowest = mask >> ((mask & -mask).bit_length() - 1)
    run = width_of(lowest)
    if lowest >> run and not cache.sparse:
        raise MaskRefused(f"mask {mask:#x} has a hole, and sparse_masks is 0")
    if run < cache.min_bits:
        raise MaskRefused(
            f"mask {mask:#x} has {run} bits, and min_cbm_bits is {cache.min_bits}"
        )
    return mask
