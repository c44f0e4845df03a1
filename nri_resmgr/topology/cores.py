"""Packages, dies, clusters, cores and logical CPUs."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import CpuSet, KiloHertz


class CoreKind(enum.StrEnum):
    """What a core was built for.

    On a machine with cores of one kind all are `PERFORMANCE`. `OTHER` stands
    for what is neither, such as Intel's low-power island.
    """

    PERFORMANCE = "performance"
    EFFICIENT = "efficient"
    OTHER = "other"


class Cpu(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One online logical CPU: what its frequency driver says.

    Attributes:
        id: The kernel's CPU number.
        base: Guaranteed frequency; None where the driver does not tell.
        min: Lowest frequency of the hardware; None without cpufreq.
        max: Highest frequency of the hardware; None without cpufreq.
        governor: Active cpufreq governor, ``""`` without cpufreq.
        epp: Energy performance preference, a word or 0-255, ``""`` without.
        capacity: Relative strength, 1024 is strongest; None where the
            architecture does not tell.
    """

    id: int
    base: KiloHertz | None = None
    min: KiloHertz | None = None
    max: KiloHertz | None = None
    governor: str = ""
    epp: str = ""
    capacity: int | None = None


class Core(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A core and where it sits.

    Attributes:
        package: Physical package id.
        die: Die id, unique only inside the package; 0 where there are no dies.
        cluster: Cluster id, unique only inside the die; None where undefined.
        id: Core id. Never a key: unique only inside its parent, on some
            platforms not even there. The CPU set is the identity.
        cpus: The core's online threads.
        kind: What the core was built for.
    """

    package: int
    die: int
    cluster: int | None
    id: int
    cpus: CpuSet
    kind: CoreKind = CoreKind.PERFORMANCE


class Cluster(msgspec.Struct, frozen=True):
    """Cores of a die that share something closer than the die does."""

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
