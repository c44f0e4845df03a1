"""The enumerations of the schema, without its prefixes.

An unknown number of a newer runtime stays a plain int.
"""

from __future__ import annotations

from enum import IntEnum


class ContainerState(IntEnum):
    """State of a container; UNKNOWN in CreateContainer and several other events."""

    UNKNOWN = 0
    CREATED = 1
    PAUSED = 2
    RUNNING = 3
    STOPPED = 4


class ProfileType(IntEnum):
    """Origin of a seccomp profile."""

    RUNTIME_DEFAULT = 0
    UNCONFINED = 1
    LOCALHOST = 2


class IoPriorityClass(IntEnum):
    """Classes of ioprio_set(2); NONE in an adjustment removes the priority."""

    NONE = 0
    RT = 1
    BE = 2
    IDLE = 3


class SchedulerPolicy(IntEnum):
    """Scheduling policies of sched(7)."""

    NONE = 0
    OTHER = 1
    FIFO = 2
    RR = 3
    BATCH = 4
    ISO = 5
    IDLE = 6
    DEADLINE = 7


class SchedulerFlag(IntEnum):
    """Flags of sched_setattr(2), numbered by NRI, not as the kernel's bits."""

    RESET_ON_FORK = 0
    RECLAIM = 1
    DL_OVERRUN = 2
    KEEP_POLICY = 3
    KEEP_PARAMS = 4
    UTIL_CLAMP_MIN = 5
    UTIL_CLAMP_MAX = 6


class MemoryPolicyMode(IntEnum):
    """Modes of set_mempolicy(2)."""

    DEFAULT = 0
    PREFERRED = 1
    BIND = 2
    INTERLEAVE = 3
    LOCAL = 4
    PREFERRED_MANY = 5
    WEIGHTED_INTERLEAVE = 6


class MemoryPolicyFlag(IntEnum):
    """Mode flags of set_mempolicy(2), numbered by NRI, not as the kernel's bits."""

    STATIC_NODES = 0
    RELATIVE_NODES = 1
    NUMA_BALANCING = 2


class AdjustedField(IntEnum):
    """Fields that a plugin can own in one request: the schema's enum ``Field``."""

    NONE = 0
    ANNOTATIONS = 1
    MOUNTS = 2
    OCI_HOOKS = 3
    DEVICES = 4
    CDI_DEVICES = 5
    ENV = 6
    ARGS = 7
    MEM_LIMIT = 8
    MEM_RESERVATION = 9
    MEM_SWAP_LIMIT = 10
    MEM_KERNEL_LIMIT = 11
    MEM_TCP_LIMIT = 12
    MEM_SWAPPINESS = 13
    MEM_DISABLE_OOM_KILLER = 14
    MEM_USE_HIERARCHY = 15
    CPU_SHARES = 16
    CPU_QUOTA = 17
    CPU_PERIOD = 18
    CPU_REALTIME_RUNTIME = 19
    CPU_REALTIME_PERIOD = 20
    CPU_SET_CPUS = 21
    CPU_SET_MEMS = 22
    PIDS_LIMIT = 23
    HUGEPAGE_LIMITS = 24
    BLOCKIO_CLASS = 25
    RDT_CLASS = 26
    CGROUPS_UNIFIED = 27
    CGROUPS_PATH = 28
    OOM_SCORE_ADJ = 29
    RLIMITS = 30
    IO_PRIORITY = 31
    SECCOMP_POLICY = 32
    NAMESPACE = 33
    SYSCTL = 34
    LINUX_NET_DEVICES = 35
    LINUX_SCHED = 36
    RDT_CLOS_ID = 37
    RDT_SCHEMATA = 38
    RDT_ENABLE_MONITORING = 39
    MEMORY_POLICY = 40
