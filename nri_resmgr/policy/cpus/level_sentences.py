"""English sentences for the levels that the CPU allocator decides on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.policy.cpus.levels import TopologyLevel

LEVEL_SENTENCES: Final[Mapping[TopologyLevel, str]] = {
    TopologyLevel.MACHINE: "anywhere on the machine",
    TopologyLevel.PACKAGE: "in one socket",
    TopologyLevel.DIE: "on one die",
    TopologyLevel.NODE: "on one NUMA node",
    TopologyLevel.CACHE: "below one last-level cache",
    TopologyLevel.CLUSTER: "in one cluster of cores",
    TopologyLevel.CORE: "in one core",
    TopologyLevel.THREAD: "one hardware thread",
}
"""The smallest part of the machine with all exclusive CPUs."""
