"""The resources that a machine's resctrl file system can allocate and monitor."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

PERCENT_MAXIMUM: Final = 100
# The software controller's value for no limit: U32_MAX.
MBPS_MAXIMUM: Final = (1 << 32) - 1
# AMD's largest limit, which means none: 1 << 11 units of 1/8 GB/s.
AMD_MAXIMUM: Final = 1 << 11


class BandwidthMode(enum.Enum):
    """Unit of the numbers in an ``MB`` line."""

    PERCENT = "percent"  # Intel, of the bandwidth of a domain
    MBPS = "MBps"  # mounted with mba_MBps
    AMD = "amd"  # units of 1/8 GB/s


class RdtCache(msgspec.Struct, frozen=True):
    """One of the folders ``info/L3``, ``info/L2``, ``info/L3CODE`` and so on.

    Attributes:
        mask: ``cbm_mask``, the bits that a group may use.
        min_bits: ``min_cbm_bits``; 0 on AMD.
        sparse: ``sparse_masks``: whether masks may have holes.
        closids: ``num_closids`` as read, which the kernel halves where code and data
            are separate.
        ids: Cache ids, ascending; they may have gaps.
    """

    mask: int
    min_bits: int
    sparse: bool
    closids: int
    ids: tuple[int, ...]


class Bandwidth(msgspec.Struct, frozen=True):
    """The folder ``info/MB``.

    Attributes:
        mode: The unit of all numbers.
        minimum: ``min_bandwidth``.
        granularity: ``bandwidth_gran``; the kernel rounds up to it.
        maximum: The number that means no limit.
        closids: ``num_closids``.
        ids: Ids of domains, ascending: those of L3 caches.
    """

    mode: BandwidthMode
    minimum: int
    granularity: int
    maximum: int
    closids: int
    ids: tuple[int, ...]


class Capabilities(msgspec.Struct, frozen=True):
    """The contents of ``info``.

    Attributes:
        caches: Caches by folder: ``L2``, ``L3``, or with separate code and data
            ``L2CODE`` and ``L2DATA``, ``L3CODE`` and ``L3DATA``.
        bandwidth: None without ``MB``.
        io_alloc: Whether the highest closid is reserved for devices.
    """

    caches: Mapping[str, RdtCache]
    bandwidth: Bandwidth | None = None
    io_alloc: bool = False

    @property
    def closids(self) -> int:
        """Largest number of groups, with the root group; 0 for none.

        Source:
            Linux resctrl.rst: the smallest of all enabled resources.
        """
        counts = [cache.closids for cache in self.caches.values()]
        if self.bandwidth is not None:
            counts.append(self.bandwidth.closids)
        return min(counts, default=0) - bool(counts and self.io_alloc)

    @property
    def has_cdp(self) -> bool:
        """True if L2 or L3 has masks for code and for data."""
        return "L2CODE" in self.caches or "L3CODE" in self.caches
