"""Caches and the CPUs that share them."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import Bytes, CpuSet


class CacheKind(enum.StrEnum):
    """Type of a cache; the values are those of sysfs."""

    DATA = "Data"
    INSTRUCTION = "Instruction"
    UNIFIED = "Unified"


class Cache(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One cache.

    Attributes:
        level: The cache level; 1 is nearest to the core.
        kind: Data, instruction or unified; level 1 has two with the same id.
        id: The kernel's id, unique per level and kind; None where the kernel reports
            none, and then the cache is no resctrl domain.
        cpus: The online CPUs that share it.
        size: Capacity, 0 where unknown.
    """

    level: int
    kind: CacheKind
    id: int | None
    cpus: CpuSet
    size: Bytes


def cache_order(cache: Cache) -> tuple[int, CacheKind, int]:
    """Return the key that sorts caches by level, kind, then lowest CPU."""
    return (cache.level, cache.kind, cache.cpus.first)
