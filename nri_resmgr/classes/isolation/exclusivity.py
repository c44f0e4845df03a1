"""The ways to keep other processes off the exclusive CPUs of a container."""

from __future__ import annotations

import enum


class Exclusivity(enum.StrEnum):
    """Means to keep other processes off exclusive CPUs; values as in documents."""

    CPUSET = "cpuset"
    """The cpusets of all other containers, which leave these CPUs out."""

    PARTITION = "partition"
    """The kernel: the container's cgroup is the root of a partition."""

    ISOLATED_PARTITION = "isolated-partition"
    """The same, and the kernel balances no load between these CPUs."""
