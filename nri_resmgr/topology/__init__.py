"""The model of a machine's hardware, independent of where its data comes from.

`Machine` has the parts of `cores`, `memory`, `platform` and `speed_select`,
checked by `checks`. `document` writes and reads it, `text` prints it, `synthetic`
builds one from the short text of `spec`. Topology hints are in `hints` and
`hint_options`.
"""

from __future__ import annotations

from nri_resmgr.topology.checks import ContradictoryMachine
from nri_resmgr.topology.cores import (
    Cache,
    CacheKind,
    Core,
    CoreKind,
    Cpu,
    cache_order,
)
from nri_resmgr.topology.machine import Machine
from nri_resmgr.topology.memory import HugePages, MemoryKind, Node
from nri_resmgr.topology.platform import (
    CgroupLayout,
    Device,
    DeviceKind,
    Rdt,
    RdtResource,
    Uncore,
)

__all__ = [
    "Cache",
    "CacheKind",
    "CgroupLayout",
    "ContradictoryMachine",
    "Core",
    "CoreKind",
    "Cpu",
    "Device",
    "DeviceKind",
    "HugePages",
    "Machine",
    "MemoryKind",
    "Node",
    "Rdt",
    "RdtResource",
    "Uncore",
    "cache_order",
]
