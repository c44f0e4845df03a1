"""RDT classes: shares of caches and memory bandwidth, as contents of resctrl.

A library of its own. `settings` are partitions and classes as configured (`text` reads
their short forms, `checks` what holds on any machine), `capabilities` what a machine
has. `plan_of` computes the schemata of groups, with `caches`, `masks` and `bandwidth`.

`read_rdt_document` of `nri_resmgr.config.rdt` reads goresctrl's files. `RdtControl` of
`nri_resmgr.host.resctrl` reads the capabilities and makes the groups of a plan.
"""

from __future__ import annotations

from nri_resmgr.classes.rdt.capabilities import (
    Bandwidth,
    BandwidthMode,
    Capabilities,
    RdtCache,
)
from nri_resmgr.classes.rdt.plan import Plan, plan_of
from nri_resmgr.classes.rdt.settings import (
    ALL,
    ROOT_CLASS,
    Allocations,
    BandwidthAllocation,
    CacheAllocation,
    Percent,
    RdtClass,
    RdtConfig,
    RdtPartition,
)

__all__ = [
    "ALL",
    "ROOT_CLASS",
    "Allocations",
    "Bandwidth",
    "BandwidthAllocation",
    "BandwidthMode",
    "CacheAllocation",
    "Capabilities",
    "Percent",
    "Plan",
    "RdtCache",
    "RdtClass",
    "RdtConfig",
    "RdtPartition",
    "plan_of",
]
