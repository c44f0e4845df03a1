"""Values every layer shares: sets of CPUs and nodes, quantities, QoS, errors."""

from __future__ import annotations

from nri_resmgr.values.cpuset import NO_CPUS, NO_NODES, CpuSet, NodeSet
from nri_resmgr.values.errors import (
    BadListFormat,
    BadMask,
    BadQuantity,
    HostError,
    InputError,
    PolicyError,
    ResmgrError,
)
from nri_resmgr.values.qos import QosClass
from nri_resmgr.values.quantities import (
    Bytes,
    KiloHertz,
    MilliCpus,
    format_bytes,
    format_cpus,
    parse_bytes,
    parse_cpus,
)

__all__ = [
    "NO_CPUS",
    "NO_NODES",
    "BadListFormat",
    "BadMask",
    "BadQuantity",
    "Bytes",
    "CpuSet",
    "HostError",
    "InputError",
    "KiloHertz",
    "MilliCpus",
    "NodeSet",
    "PolicyError",
    "QosClass",
    "ResmgrError",
    "format_bytes",
    "format_cpus",
    "parse_bytes",
    "parse_cpus",
]
