"""Capabilities of the simulated CPU, and the ``info`` files of resctrl for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

UNLIMITED_MBPS: Final = (1 << 32) - 1
UNLIMITED_AMD: Final = 1 << 11
_FULL_PERCENT: Final = 100

FEATURES: Final = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")


class Ways(msgspec.Struct, frozen=True):
    """One level of caches.

    Attributes:
        bits: Number of bits of a mask.
        ids: Ids of the caches.
        closids: Number of classes of service.
        min_bits: Least number of bits of a group.
        sparse: Whether masks may have holes.
    """

    bits: int = 20
    ids: tuple[int, ...] = (0, 1)
    closids: int = 16
    min_bits: int = 1
    sparse: bool = False

    @property
    def mask(self) -> int:
        """The mask with all bits."""
        return (1 << self.bits) - 1


class Throttle(msgspec.Struct, frozen=True):
    """Memory bandwidth.

    Attributes:
        kind: Vendor: AMD counts in eighths of GB/s, Intel in percent.
        minimum: Least value of a group.
        step: Values are rounded up to a multiple of this.
        closids: Number of classes of service.
    """

    kind: Literal["Intel", "AMD"] = "Intel"
    minimum: int = 10
    step: int = 10
    closids: int = 8

    @property
    def maximum(self) -> int:
        """The value without a limit."""
        return UNLIMITED_AMD if self.kind == "AMD" else _FULL_PERCENT


class Hardware(msgspec.Struct, frozen=True):
    """Capabilities of the CPU, and how resctrl is mounted.

    Attributes:
        l3: L3 caches; None if they cannot be allocated.
        l2: L2 caches, likewise.
        throttle: Memory bandwidth by L3 cache, likewise.
        rmids: Number of groups with counters, including the root group; 0 without.
        clusters: Number of sub-NUMA clusters of one L3 cache.
        options: Mount options: ``cdp``, ``cdpl2``, ``mba_MBps``.
    """

    l3: Ways | None = Ways()
    l2: Ways | None = None
    throttle: Throttle | None = Throttle()
    rmids: int = 32
    clusters: int = 1
    options: frozenset[str] = frozenset()

    @property
    def caches(self) -> Mapping[str, Ways]:
        """Caches by resource; with CDP two resources, code and data."""
        return dict(self._caches())

    @property
    def domains(self) -> tuple[int, ...]:
        """Ids of the L3 caches."""
        return (self.l3 or Ways()).ids

    @property
    def in_mbps(self) -> bool:
        """True if bandwidth is in MiB/s."""
        return "mba_MBps" in self.options

    @property
    def default_bandwidth(self) -> int:
        """Bandwidth of a new group."""
        if self.in_mbps:
            return UNLIMITED_MBPS
        return _FULL_PERCENT if self.throttle is None else self.throttle.maximum

    @property
    def closids(self) -> int:
        """Number of possible groups, including the root group."""
        counts = [ways.closids for ways in self.caches.values()]
        if self.throttle is not None:
            counts.append(self.throttle.closids)
        return min(counts, default=0)

    def info(self) -> dict[str, str]:
        """Return the files below ``info``, without the last status."""
        files = {}
        for name, ways in self.caches.items():
            files[f"{name}/num_closids"] = f"{ways.closids}\n"
            files[f"{name}/cbm_mask"] = f"{ways.mask:x}\n"
            files[f"{name}/min_cbm_bits"] = f"{ways.min_bits}\n"
            files[f"{name}/shareable_bits"] = "0\n"
            files[f"{name}/sparse_masks"] = f"{ways.sparse:d}\n"
        if self.throttle is not None:
            files["MB/num_closids"] = f"{self.throttle.closids}\n"
            files["MB/min_bandwidth"] = f"{self.throttle.minimum}\n"
            files["MB/bandwidth_gran"] = f"{self.throttle.step}\n"
            files["MB/delay_linear"] = "1\n"
        if self.rmids:
            files["L3_MON/num_rmids"] = f"{self.rmids}\n"
            settings = "".join(f"{name}_config\n" for name in FEATURES[1:])
            files["L3_MON/mon_features"] = "\n".join(FEATURES) + "\n" + settings
            files["L3_MON/max_threshold_occupancy"] = "65536\n"
        return files

    def _caches(self) -> Iterator[tuple[str, Ways]]:
        for level, option, ways in (("L3", "cdp", self.l3), ("L2", "cdpl2", self.l2)):
            if ways is not None and option in self.options:
                # Each group uses two closids of the hardware, for code and data.
                half = msgspec.structs.replace(ways, closids=ways.closids // 2)
                yield f"{level}CODE", half
                yield f"{level}DATA", half
            elif ways is not None:
                yield level, ways
