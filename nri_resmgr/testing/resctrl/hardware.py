"""What a pretended CPU can allocate and count, and what resctrl says of it."""

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
        bits: Of a mask.
        ids: Of its caches.
        closids: Classes of service.
        min_bits: The fewest a group may have.
        sparse: Whether masks may have holes.
    """

    bits: int = 20
    ids: tuple[int, ...] = (0, 1)
    closids: int = 16
    min_bits: int = 1
    sparse: bool = False

    @property
    def mask(self) -> int:
        """Return all bits."""
        return (1 << self.bits) - 1


class Throttle(msgspec.Struct, frozen=True):
    """Memory bandwidth.

    Attributes:
        kind: Whose: AMD counts in eighths of GB/s, Intel in percent.
        minimum: The least that a group may have.
        step: Others are rounded up to a multiple.
        closids: Classes of service.
    """

    kind: Literal["Intel", "AMD"] = "Intel"
    minimum: int = 10
    step: int = 10
    closids: int = 8

    @property
    def maximum(self) -> int:
        """Return what stands for no limit."""
        return UNLIMITED_AMD if self.kind == "AMD" else _FULL_PERCENT


class Hardware(msgspec.Struct, frozen=True):
    """What resctrl is mounted on.

    Attributes:
        l3: None where it cannot be allocated.
        l2: Likewise.
        throttle: Of memory bandwidth; its domains are L3 caches. Likewise.
        rmids: Groups that can be counted, the root group among them; 0 where nothing
            is.
        clusters: Sub-NUMA clusters of one L3 cache.
        options: Of the mount: ``cdp``, ``cdpl2``, ``mba_MBps``.
    """

    l3: Ways | None = Ways()
    l2: Ways | None = None
    throttle: Throttle | None = Throttle()
    rmids: int = 32
    clusters: int = 1
    options: frozenset[str] = frozenset()

    @property
    def caches(self) -> Mapping[str, Ways]:
        """Return caches by the resource that stands for them, or for a half."""
        return dict(self._caches())

    @property
    def domains(self) -> tuple[int, ...]:
        """Return the ids of L3 caches."""
        return (self.l3 or Ways()).ids

    @property
    def in_mbps(self) -> bool:
        """Whether bandwidth is in MiB/s."""
        return "mba_MBps" in self.options

    @property
    def default_bandwidth(self) -> int:
        """Return what a new group has."""
        if self.in_mbps:
            return UNLIMITED_MBPS
        return _FULL_PERCENT if self.throttle is None else self.throttle.maximum

    @property
    def closids(self) -> int:
        """Return how many groups there can be, the root group among them."""
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
                # Every group takes two of the hardware's: one for each.
                half = msgspec.structs.replace(ways, closids=ways.closids // 2)
                yield f"{level}CODE", half
                yield f"{level}DATA", half
            elif ways is not None:
                yield level, ways
