"""Memory classes: swap by share of the limit, NUMA policies, limits of misc resources.

A library of its own. `qos` has the classes for swap, `numa` NUMA policies, `misc` the
limits, and `scopes` finds the annotation that applies to a container. Refusals are in
`errors`.

`nri_resmgr.config.memory_classes` reads the files of nri-plugins' memory-qos and
memory-policy.
"""

from __future__ import annotations

from nri_resmgr.classes.memory.errors import (
    BadMemoryAnnotation,
    NoSuchNodes,
)
from nri_resmgr.classes.memory.misc import (
    EPC_KEY,
    MISC_KEY,
    misc_files,
    misc_limits,
    read_capacity,
)
from nri_resmgr.classes.memory.numa import (
    CLASS_KEY,
    POLICY_KEY,
    MemoryPlace,
    NodeWord,
    NumaPolicy,
    NumaPolicyRequest,
    PolicyFlag,
    PolicyMode,
    ResolvedPolicy,
    chosen_numa_policy,
    numa_policy_request,
    resolve_numa_policy,
)
from nri_resmgr.classes.memory.qos import (
    QOS_SUFFIX,
    MemoryQosClass,
    MemoryQosConfig,
    MemoryQosRequest,
    memory_qos_request,
    memory_qos_unified,
)

__all__ = [
    "CLASS_KEY",
    "EPC_KEY",
    "MISC_KEY",
    "POLICY_KEY",
    "QOS_SUFFIX",
    "BadMemoryAnnotation",
    "MemoryPlace",
    "MemoryQosClass",
    "MemoryQosConfig",
    "MemoryQosRequest",
    "NoSuchNodes",
    "NodeWord",
    "NumaPolicy",
    "NumaPolicyRequest",
    "PolicyFlag",
    "PolicyMode",
    "ResolvedPolicy",
    "chosen_numa_policy",
    "memory_qos_request",
    "memory_qos_unified",
    "misc_files",
    "misc_limits",
    "numa_policy_request",
    "read_capacity",
    "resolve_numa_policy",
]
