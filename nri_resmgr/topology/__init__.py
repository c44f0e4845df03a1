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
from nri_resmgr.topology.spec import BadMachineSpec
from nri_resmgr.topology.synthetic import parse_spec

__all__ = [
    "BadMachineSpec",
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
    "parse_spec",
]
