"""The line of schemata for memory bandwidth, in the unit that a machine counts in."""

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
    BandwidthMode.PERCENT: "has no entry in %, which this machine counts in",
    BandwidthMode.MBPS: "has no entry in MBps, and resctrl is mounted with mba_MBps",
    BandwidthMode.AMD: (
        "has no entry in MBps, and this machine (1/8 GB/s) knows no percent but 100%"
    ),
}


def bandwidth_line(partition: RdtPartition, one: RdtClass, bandwidth: Bandwidth) -> str:
    """Write the line of a class: ``MB:0=50;1=100``, ended.

    A percent of a class is one of its partition's. In other units the lower of both
    goes. Where neither asks for anything there is no limit.

    Raises:
        CannotAllocate: There is no entry in a unit that this machine can use.
    """
    fields = []
    for domain in bandwidth.ids:
        above = _limit((partition.name, ""), partition.allocations, domain, bandwidth)
        own = _limit(
            (partition.name, group_of(one)), one.allocations, domain, bandwidth
        )
        fields.append(f"{domain}={_within(above, own, bandwidth)}")
    return f"{BANDWIDTH}:{';'.join(fields)}\n"


def _limit(
    who: tuple[str, str], asking: Allocations, domain: int, bandwidth: Bandwidth
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
        raise CannotAllocate(*who, BANDWIDTH, domain, why)
    return min(found, bandwidth.maximum)


def _amd_units(share: BandwidthAllocation, maximum: int) -> int | None:
    """Round up to units; of percents only no limit has a meaning.

    The largest limit is far above what the memory of one L3 cache gives, so that half
    of it would be no limit either, and the kernel does not tell the real bandwidth.
    """
    if share.mbps is not None:
        return -(-share.mbps // _MBPS_PER_AMD_UNIT)
    return maximum if share.percent == PERCENT_MAXIMUM else None


def _given(share: BandwidthAllocation) -> str:
    given = [] if share.percent is None else [f"{share.percent}%"]
    given += [] if share.mbps is None else [f"{share.mbps}MBps"]
    given += [f"{text!r} of no known unit" for text in share.unknown]
    return ", ".join(given) or "none at all"


def _within(above: int, own: int, bandwidth: Bandwidth) -> int:
    match bandwidth.mode:
        case BandwidthMode.PERCENT:
            share = own * max(above, bandwidth.minimum) // PERCENT_MAXIMUM
            return max(share, bandwidth.minimum)
        case BandwidthMode.MBPS:
            # The minimum is one of the hardware's percents.
            return min(above, own)
        case BandwidthMode.AMD:
            return max(min(above, own), bandwidth.minimum, 1)
