"""RDT as an operator configures it: partitions, classes, and their shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

# The key for all cache ids that no other key names.
ALL: Final = -1
LEVELS: Final = ("L2", "L3")
BANDWIDTH: Final = "MB"

# The class whose group is the root of the file system; documents may also write "".
ROOT_CLASS: Final = "system/default"


class Percent(msgspec.Struct, frozen=True):
    """``60%`` of a cache, or the lowest 60 percent of a partition."""

    percent: int


class PercentRange(msgspec.Struct, frozen=True):
    """``20-60%`` of a partition; for classes only."""

    low: int
    high: int


class BitMask(msgspec.Struct, frozen=True):
    """``0xff0``, or ``4-11``: bits of a cache, or counted from a partition's lowest."""

    bits: int


CacheShare: TypeAlias = Percent | PercentRange | BitMask


class CacheAllocation(msgspec.Struct, frozen=True):
    """Shares of one cache; code and data are both given, or fall back to unified."""

    unified: CacheShare
    code: CacheShare | None = None
    data: CacheShare | None = None


class BandwidthAllocation(msgspec.Struct, frozen=True):
    """A share of one domain's memory bandwidth, in the configured units.

    Attributes:
        percent: Of the bandwidth; None without such an entry.
        mbps: MB per second; None without such an entry.
        unknown: Entries in unknown units, as written.
    """

    percent: int | None = None
    mbps: int | None = None
    unknown: tuple[str, ...] = ()


class Allocations(msgspec.Struct, frozen=True):
    """Shares of a partition or a class, by cache id or `ALL`.

    An id that is not named gets everything. A resource that is not named is not
    allocated.

    Attributes:
        caches: Shares by level, one of `LEVELS`.
    """

    caches: Mapping[str, Mapping[int, CacheAllocation]] = {}
    bandwidth: Mapping[int, BandwidthAllocation] | None = None

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the allocated resources: some of L2, L3, MB."""
        levels = tuple(level for level in LEVELS if level in self.caches)
        return levels if self.bandwidth is None else (*levels, BANDWIDTH)


class RdtClass(msgspec.Struct, frozen=True):
    """A class, which is a group of resctrl with shares of its partition.

    Attributes:
        name: `ROOT_CLASS` or empty text for the root group.
    """

    name: str
    allocations: Allocations = Allocations()
    deny_pod_annotation: bool = False
    deny_container_annotation: bool = False


class RdtPartition(msgspec.Struct, frozen=True):
    """A part of each cache that no other partition uses, and the classes in it."""

    name: str
    allocations: Allocations = Allocations()
    classes: tuple[RdtClass, ...] = ()


class RdtConfig(msgspec.Struct, frozen=True):
    """All partitions.

    Attributes:
        required: Resources, some of L2, L3, MB, that must exist if a class asks for
            them; others are ignored where they are missing.
    """

    partitions: tuple[RdtPartition, ...] = ()
    required: frozenset[str] = frozenset()
