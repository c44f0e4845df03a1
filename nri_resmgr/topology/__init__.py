"""The hardware model: pure values, wherever the facts come from."""

from __future__ import annotations

from nri_resmgr.topology.caches import Cache, CacheKind, cache_order
from nri_resmgr.topology.checks import ContradictoryMachine
from nri_resmgr.topology.cores import Cluster, Core, CoreKind, Cpu, Die, Package
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
    "Cluster",
    "ContradictoryMachine",
    "Core",
    "CoreKind",
    "Cpu",
    "Device",
    "DeviceKind",
    "Die",
    "HugePages",
    "Machine",
    "MemoryKind",
    "Node",
    "Package",
    "Rdt",
    "RdtResource",
    "Uncore",
    "cache_order",
]
