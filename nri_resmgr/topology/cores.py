"""Packages, dies, clusters, cores, logical CPUs and caches."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import Bytes, CpuSet, KiloHertz, StoredValue


class CoreKind(enum.StrEnum):
    """Type of a core on hybrid machines; on others all are `PERFORMANCE`.

    `OTHER` is neither, such as the cores of Intel's low-power island.
    """

    PERFORMANCE = "performance"
    EFFICIENT = "efficient"
    OTHER = "other"


class Cpu(StoredValue, frozen=True):
    """One online logical CPU, with the data of its frequency driver.

    Attributes:
        base: Guaranteed frequency; None where the driver does not report it.
        min: Lowest frequency of the hardware; None without cpufreq.
        max: Highest frequency of the hardware; None without cpufreq.
        governor: Active cpufreq governor, ``""`` without cpufreq.
        epp: Energy performance preference, a word or 0-255, ``""`` without.
        capacity: Relative strength, 1024 is strongest; None where the
            architecture does not report it.
    """

    id: int
    base: KiloHertz | None = None
    min: KiloHertz | None = None
    max: KiloHertz | None = None
    governor: str = ""
    epp: str = ""
    capacity: int | None = None


class Core(StoredValue, frozen=True):
    """A core with its place in package, die and cluster, and its online threads.

    Attributes:
        die: Die id, unique only inside the package; 0 where there are no dies.
        cluster: Cluster id, unique only inside the die; None where undefined.
        id: Core id. Not usable as a key: unique only inside its parent, on some
            platforms not even there. The CPU set identifies a core.
    """

    package: int
    die: int
    cluster: int | None
    id: int
    cpus: CpuSet
    kind: CoreKind = CoreKind.PERFORMANCE


class Cluster(msgspec.Struct, frozen=True):
    """Cores of a die that share a resource, such as a level 2 cache."""

    package: int
    die: int
    id: int
    cpus: CpuSet


class Die(msgspec.Struct, frozen=True):
    """A die; its id is unique only inside its package."""

    package: int
    id: int
    cpus: CpuSet


class Package(msgspec.Struct, frozen=True):
    """A physical package (a socket)."""

    id: int
    cpus: CpuSet


class CacheKind(enum.StrEnum):
    """Type of a cache; the values are those of sysfs."""

    DATA = "Data"
    INSTRUCTION = "Instruction"
    UNIFIED = "Unified"


class Cache(StoredValue, frozen=True):
    """One cache, with the online CPUs that share it; level 1 is nearest to the core.

    Attributes:
        kind: Data, instruction or unified; level 1 has two with the same id.
        id: The kernel's id, unique per level and kind; None where the kernel reports
            none, and then the cache is no resctrl domain.
        size: Capacity, 0 where unknown.
    """

    level: int
    kind: CacheKind
    id: int | None
    cpus: CpuSet
    size: Bytes


def cache_order(cache: Cache) -> tuple[int, CacheKind, int]:
    """Return the key that sorts caches by level, kind, then lowest CPU."""
    return (cache.level, cache.kind, cache.cpus.first)
