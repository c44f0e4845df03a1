"""The lines of schemata for caches: masks of partitions, then of their classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from nri_resmgr.classes.rdt.capabilities import Capabilities, RdtCache
from nri_resmgr.classes.rdt.checks import group_of
from nri_resmgr.classes.rdt.errors import CannotAllocate, MaskRefused
from nri_resmgr.classes.rdt.masks import (
    check_mask,
    divide,
    min_bits_of,
    narrow,
    width_of,
)
from nri_resmgr.classes.rdt.settings import (
    ALL,
    BitMask,
    CacheAllocation,
    CacheShare,
    Percent,
    PercentRange,
    RdtClass,
    RdtPartition,
)

UNIFIED: Final = "unified"
_KINDS: Final = (UNIFIED, "code", "data")
_WHOLE: Final = CacheAllocation(Percent(100))

# Masks by partition, cache id and kind. Code and data are in it if they were given.
PartitionMasks: TypeAlias = Mapping[tuple[str, int, str], int]


def rows_of(level: str, machine: Capabilities) -> tuple[tuple[str, str], ...]:
    """Return the resources of a level, each with its kind of share.

    >>> rows_of("L3", Capabilities({"L3": RdtCache(0xFFF, 1, False, 16, (0,))}))
    (('L3', 'unified'),)
    """
    split = ((f"{level}CODE", "code"), (f"{level}DATA", "data"))
    rows = ((level, UNIFIED), *split)
    return tuple(row for row in rows if row[0] in machine.caches)


def partition_masks(
    partitions: Sequence[RdtPartition], level: str, machine: Capabilities
) -> PartitionMasks:
    """Compute the mask of each partition in each cache of a level.

    All kinds of shares are checked, whether the machine separates code and data or
    not: whether a document is valid depends on no mount option.

    Raises:
        CannotAllocate: The shares contradict each other, or the cache has no such mask.
    """
    asking = [one for one in partitions if level in one.allocations.caches]
    rows = rows_of(level, machine)
    if not asking or not rows:
        return {}
    cache = machine.caches[rows[0][0]]
    masks: dict[tuple[str, int, str], int] = {}
    for cache_id in cache.ids:
        allocations = {
            one.name: _allocation(one.allocations.caches[level], cache_id)
            for one in sorted(asking, key=lambda one: one.name)
        }
        for kind in _KINDS:
            place = (f"{level}{'' if kind == UNIFIED else kind.upper()}", cache_id)
            shares = _shares(allocations, kind, place)
            for name, mask in _divide(shares, cache, place).items():
                masks[name, cache_id, kind] = mask
    return masks


def class_line(
    asking: tuple[RdtPartition, RdtClass],
    row: tuple[str, str],
    cache: RdtCache,
    masks: PartitionMasks,
) -> str:
    """Return the line of a class for one resource: ``L3:0=fff;1=ff0``, ended.

    *row* is one of `rows_of`, *masks* are those of the partitions for its level.

    Raises:
        CannotAllocate: The share is not within the partition, or the cache has no such
            mask.
    """
    (partition, one), (resource, kind) = asking, row
    by_id = one.allocations.caches.get(resource[:2])
    fields = []
    for cache_id in cache.ids:
        own, unified = ((partition.name, cache_id, one) for one in (kind, UNIFIED))
        mask = masks.get(own, masks.get(unified, (1 << width_of(cache.mask)) - 1))
        if by_id is not None:
            allocation = _allocation(by_id, cache_id)
            share = _of_kind(allocation, kind) or allocation.unified
            try:
                narrowed = narrow(mask, share, min_bits_of(cache))
                mask = check_mask(narrowed, cache)
            except MaskRefused as error:
                raise CannotAllocate(
                    partition.name, group_of(one), resource, cache_id, error.why
                ) from None
        fields.append(f"{cache_id}={mask:x}")
    return f"{resource}:{';'.join(fields)}\n"


def _allocation(by_id: Mapping[int, CacheAllocation], cache_id: int) -> CacheAllocation:
    return by_id.get(cache_id) or by_id.get(ALL, _WHOLE)


def _of_kind(allocation: CacheAllocation, kind: str) -> CacheShare | None:
    shares = (allocation.unified, allocation.code, allocation.data)
    return shares[_KINDS.index(kind)]


def _shares(
    allocations: Mapping[str, CacheAllocation], kind: str, place: tuple[str, int]
) -> dict[str, CacheShare]:
    """Return the shares of one kind: those of all partitions, or none."""
    shares: dict[str, CacheShare] = {}
    missing = []
    for name, allocation in allocations.items():
        share = _of_kind(allocation, kind)
        if share is None:
            missing.append(name)
        else:
            shares[name] = share
    if shares and missing:
        why = f"has no share for {kind}, as partition {min(shares)!r} has"
        raise CannotAllocate(missing[0], "", *place, why)
    return shares


def _divide(
    shares: Mapping[str, CacheShare], cache: RdtCache, place: tuple[str, int]
) -> dict[str, int]:
    """Return the masks of partitions; all have the form of the first one's share."""
    first = next(iter(shares.values()), None)
    if first is None:
        return {}
    if isinstance(first, BitMask):
        return _absolute(shares, cache, place)
    percents = dict(_percents(shares, place))
    try:
        return divide(percents, width_of(cache.mask), min_bits_of(cache))
    except MaskRefused as error:
        raise CannotAllocate("", "", *place, error.why) from None


def _absolute(
    shares: Mapping[str, CacheShare], cache: RdtCache, place: tuple[str, int]
) -> dict[str, int]:
    masks: dict[str, int] = {}
    for name, share in shares.items():
        if not isinstance(share, BitMask):
            raise CannotAllocate(name, "", *place, _mixed(shares))
        for other, mask in masks.items():
            if both := mask & share.bits:
                why = f"shares the bits {both:#x} with partition {other!r}"
                raise CannotAllocate(name, "", *place, why)
        try:
            masks[name] = check_mask(share.bits, cache)
        except MaskRefused as error:
            raise CannotAllocate(name, "", *place, error.why) from None
    return masks


def _percents(
    shares: Mapping[str, CacheShare], place: tuple[str, int]
) -> Iterator[tuple[str, int]]:
    for name, share in shares.items():
        match share:
            case Percent(percent):
                yield name, percent
            case BitMask():
                raise CannotAllocate(name, "", *place, _mixed(shares))
            case PercentRange(low, high):
                why = f"{low}-{high}% is for classes; partitions take a percent or bits"
                raise CannotAllocate(name, "", *place, why)


def _mixed(shares: Mapping[str, CacheShare]) -> str:
    names = ", ".join(repr(name) for name in shares)
    return f"percents and bits cannot be combined (partitions {names})"
