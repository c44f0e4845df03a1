"""The hardware model: pure values, wherever the facts come from."""

from __future__ import annotations

from nri_resmgr.topology.caches import Cache, CacheKind, cache_order
from nri_resmgr.topology.checks import ContradictoryMachine
from nri_resmgr.topology.cores import Cluster, Core, CoreKind, Cpu, Die, Package
from nri_resmgr.topology.machine import Machine
from nri_resmgr.topology.memory import HugePages, MemoryKind, Node
from nri_resmgr.topology.spec import BadMachineSpec
from nri_resmgr.topology.synthetic import parse_spec

__all__ = [
    "BadMachineSpec",
    "Cache",
    "CacheKind",
    "Cluster",
    "ContradictoryMachine",
    "Core",
    "CoreKind",
    "Cpu",
    "Die",
    "HugePages",
    "Machine",
    "MemoryKind",
    "Node",
    "Package",
    "cache_order",
    "parse_spec",
]
