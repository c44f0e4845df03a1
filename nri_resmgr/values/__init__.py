"""Values every layer shares: sets of CPUs and nodes, quantities, QoS, errors.

* `cpuset`: sets of CPUs and NUMA nodes, as integers, in the kernel's text formats.
* `quantities`: CPUs, bytes and frequencies, with Kubernetes' text forms.
* `qos`, `scheduling`, `cpu_weights`: QoS classes, scheduling classes, weights.
* `annotations`: annotations of pods, and the containers that they apply to.
* `errors`, `exit_status`: the root and the branches of the error tree; their status.
* `stored`, `documents`: bases and conversions of values that are written to files.
* `printable`, `shorten`, `closest`: text of others in messages; `counts`: grammar.
* `globs`, `identity_cache`, `sha256`: patterns, a cache, digests.

Nothing here does I/O; read `cpuset` first.
"""

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
    ONE_CPU,
    Bytes,
    KiloHertz,
    MilliCpus,
    format_bytes,
    format_cpus,
    parse_bytes,
    parse_cpus,
)
from nri_resmgr.values.stored import StoredValue

__all__ = [
    "NO_CPUS",
    "NO_NODES",
    "ONE_CPU",
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
    "StoredValue",
    "format_bytes",
    "format_cpus",
    "parse_bytes",
    "parse_cpus",
]
