"""The words for fields in errors of conflicts, by the release of NRI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_proto import NriLevel, nri_pb2
from nri_proto.levels import VALIDATION

# Until validators came, which know fields by the schema's names.
# Source: errors of containerd with NRI 0.6 and 0.8, which
# tests/containerd/test_conflicts.py compares.
_BEFORE: Final[Mapping[int, str]] = {
    nri_pb2.Annotations: "annotation",
    nri_pb2.Mounts: "mount",
    nri_pb2.Devices: "device",
    nri_pb2.CdiDevices: "CDI device",
    nri_pb2.Env: "env",
    nri_pb2.MemLimit: "memory limit",
    nri_pb2.MemReservation: "memory reservation",
    nri_pb2.MemSwapLimit: "memory swap limit",
    nri_pb2.MemKernelLimit: "memory kernel limit",
    nri_pb2.MemTCPLimit: "memory TCP limit",
    nri_pb2.MemSwappiness: "memory swappiness",
    nri_pb2.MemDisableOomKiller: "memory disable OOM killer",
    nri_pb2.MemUseHierarchy: "memory 'UseHierarchy'",
    nri_pb2.CPUShares: "CPU shares",
    nri_pb2.CPUQuota: "CPU quota",
    nri_pb2.CPUPeriod: "CPU period",
    nri_pb2.CPURealtimeRuntime: "CPU realtime runtime",
    nri_pb2.CPURealtimePeriod: "CPU realtime period",
    nri_pb2.CPUSetCPUs: "CPU pinning",
    nri_pb2.CPUSetMems: "memory pinning",
    nri_pb2.PidsLimit: "pids pinning",
    nri_pb2.HugepageLimits: "hugepage limit of size",
    nri_pb2.BlockioClass: "block I/O class",
    nri_pb2.RdtClass: "RDT class",
    nri_pb2.CgroupsUnified: "unified resource",
    nri_pb2.CgroupsPath: "cgroups path",
    nri_pb2.OomScoreAdj: "oom score adj",
    nri_pb2.Rlimits: "rlimit",
}


def subject(field: int, level: NriLevel) -> str:
    """Return how a runtime of a level names a field, given by its number."""
    name = nri_pb2.Field.Name(field)
    return name if level >= VALIDATION else _BEFORE.get(field, name)
