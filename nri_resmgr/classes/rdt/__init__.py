"""RDT classes: shares of caches and memory bandwidth, as contents of resctrl.

A library of its own. `settings` are partitions and classes as configured (`text` reads
their short forms, `checks` what holds on any machine), `capabilities` what a machine
has. `plan_of` computes the schemata of groups, with `caches`, `masks` and `bandwidth`.

`read_rdt_document` of `nri_resmgr.config.rdt` reads goresctrl's files. `RdtControl` of
`nri_resmgr.host.resctrl` reads the capabilities and makes the groups of a plan.
"""

from __future__ import annotations

from nri_resmgr.classes.rdt.capabilities import (
    AMD_MAXIMUM,
    MBPS_MAXIMUM,
    PERCENT_MAXIMUM,
    Bandwidth,
    BandwidthMode,
    Capabilities,
    Monitoring,
    RdtCache,
)
from nri_resmgr.classes.rdt.checks import check_config
from nri_resmgr.classes.rdt.errors import (
    BadClass,
    BadShare,
    CannotAllocate,
    TooManyClasses,
)
from nri_resmgr.classes.rdt.plan import Plan, plan_of
from nri_resmgr.classes.rdt.settings import (
    ALL,
    ROOT_CLASS,
    Allocations,
    BandwidthAllocation,
    BitMask,
    CacheAllocation,
    Percent,
    PercentRange,
    RdtClass,
    RdtConfig,
    RdtPartition,
)
from nri_resmgr.classes.rdt.text import (
    parse_bandwidth,
    parse_cache_ids,
    parse_cache_share,
)

__all__ = [
    "ALL",
    "AMD_MAXIMUM",
    "MBPS_MAXIMUM",
    "PERCENT_MAXIMUM",
    "ROOT_CLASS",
    "Allocations",
    "BadClass",
    "BadShare",
    "Bandwidth",
    "BandwidthAllocation",
    "BandwidthMode",
    "BitMask",
    "CacheAllocation",
    "CannotAllocate",
    "Capabilities",
    "Monitoring",
    "Percent",
    "PercentRange",
    "Plan",
    "RdtCache",
    "RdtClass",
    "RdtConfig",
    "RdtPartition",
    "TooManyClasses",
    "check_config",
    "parse_bandwidth",
    "parse_cache_ids",
    "parse_cache_share",
    "plan_of",
]
