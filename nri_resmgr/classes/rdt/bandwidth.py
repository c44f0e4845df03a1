"""The line of schemata for memory bandwidth, in the machine's unit."""

from __future__ import annotations

from typing import Final

from nri_resmgr.classes.rdt.capabilities import (
    PERCENT_MAXIMUM,
    Bandwidth,
    BandwidthMode,
)
from nri_resmgr.classes.rdt.checks import group_of
from nri_resmgr.classes.rdt.errors import CannotAllocate
from nri_resmgr.classes.rdt.settings import (
    ALL,
    BANDWIDTH,
    Allocations,
    BandwidthAllocation,
    RdtClass,
    RdtPartition,
)

# AMD64 Technology Platform Quality of Service Extensions: limits count 1/8 GB/s.
_MBPS_PER_AMD_UNIT: Final = 125

_WANTED: Final = {
    BandwidthMode.PERCENT: "has no entry in %, the unit of this machine",
    BandwidthMode.MBPS: "has no entry in MBps, and resctrl is mounted with mba_MBps",
    BandwidthMode.AMD: (
        "has no entry in MBps, and this machine (1/8 GB/s) has no percent but 100%"
    ),
}


def bandwidth_line(partition: RdtPartition, one: RdtClass, bandwidth: Bandwidth) -> str:
    """Return the line of a class: ``MB:0=50;1=100``, ended.

    A percent of a class is relative to its partition. In other units the lower of both
    applies. Without a request of either there is no limit.

    Raises:
        CannotAllocate: There is no entry in a unit that this machine can use.
    """
    fields = []
    for domain in bandwidth.ids:
        names = partition.name, ""
        most = _limit(names, partition.allocations, domain, bandwidth)
        names = partition.name, group_of(one)
        limit = _limit(names, one.allocations, domain, bandwidth)
        fields.append(f"{domain}={_within(most, limit, bandwidth)}")
    return f"{BANDWIDTH}:{';'.join(fields)}\n"


def _limit(
    names: tuple[str, str], asking: Allocations, domain: int, bandwidth: Bandwidth
) -> int:
    by_id = asking.bandwidth
    share = None if by_id is None else by_id.get(domain) or by_id.get(ALL)
    if share is None:
        return bandwidth.maximum
    match bandwidth.mode:
        case BandwidthMode.PERCENT:
            found = share.percent
        case BandwidthMode.MBPS:
            found = share.mbps
        case BandwidthMode.AMD:
            found = _amd_units(share, bandwidth.maximum)
    if found is None:
        why = f"{_WANTED[bandwidth.mode]}; it has {_given(share)}"
        raise CannotAllocate(*names, BANDWIDTH, domain, why)
    return min(found, bandwidth.maximum)


def _amd_units(share: BandwidthAllocation, maximum: int) -> int | None:
    """Return a limit in units, rounded up; of percents only 100 has a meaning.

    The largest limit is far above the memory bandwidth of one L3 cache, so that half
    of it would not limit either, and the kernel does not report the real bandwidth.
    """
    if share.mbps is not None:
        return -(-share.mbps // _MBPS_PER_AMD_UNIT)
    return maximum if share.percent == PERCENT_MAXIMUM else None


def _given(share: BandwidthAllocation) -> str:
    given = [] if share.percent is None else [f"{share.percent}%"]
    given += [] if share.mbps is None else [f"{share.mbps}MBps"]
    given += [f"{text!r} of no known unit" for text in share.unknown]
    return ", ".join(given) or "none at all"


def _within(most: int, limit: int, bandwidth: Bandwidth) -> int:
    match bandwidth.mode:
        case BandwidthMode.PERCENT:
            share = limit * max(most, bandwidth.minimum) // PERCENT_MAXIMUM
            return max(share, bandwidth.minimum)
        case BandwidthMode.MBPS:
            # Here the minimum of the hardware is in percent.
            return min(most, limit)
        case BandwidthMode.AMD:
            return max(min(most, limit), bandwidth.minimum, 1)
