"""The settings that the CPUs of a machine have, and their limits."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.topology.speed_select import Punit
from nri_resmgr.values import CpuSet, KiloHertz

# Also named in messages where they are missing.
CPU_ROOT: Final = "/sys/devices/system/cpu"
CPUFREQ_ROOT: Final = f"{CPU_ROOT}/cpufreq"
UNCORE_ROOT: Final = f"{CPU_ROOT}/intel_uncore_frequency"
SST_DEVICE: Final = "/dev/isst_interface"


class CpufreqPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A frequency policy: CPUs that share a frequency.

    Attributes:
        folder: The folder of its files, by the host's path.
        cpus: Its online CPUs; one on most machines.
        max: The highest frequency, with turbo if that is on.
        base: The guaranteed frequency; None if the driver does not report it.
        governor: The governor in force when this was read.
        epps: Words for the energy performance preference; empty without it.
    """

    folder: str
    cpus: CpuSet
    driver: str = ""
    min: KiloHertz | None = None
    max: KiloHertz | None = None
    base: KiloHertz | None = None
    governors: tuple[str, ...] = ()
    governor: str = ""
    epps: tuple[str, ...] = ()


class IdleStates(msgspec.Struct, frozen=True):
    """CPUs with the same idle states.

    Attributes:
        names: Names of the states, by the kernel's number: ``POLL``, ``C1``, ``C6``.
    """

    cpus: CpuSet
    names: tuple[str, ...]


class UncoreDomain(msgspec.Struct, frozen=True):
    """Parts outside the cores with one clock, such as mesh and caches of a die.

    Attributes:
        folder: The folder of its files, by the host's path.
        min: The lowest frequency at boot.
        max: The highest frequency at boot.
    """

    folder: str
    cpus: CpuSet
    min: KiloHertz | None = None
    max: KiloHertz | None = None


class CpuKnobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a machine that CPU classes depend on.

    Attributes:
        policies: Frequency policies by lowest CPU; empty without a cpufreq driver.
        idle: Idle states; empty without a cpuidle driver.
        uncore: Uncore domains by folder; empty without the driver.
        packages: The online CPUs of each package.
        cores: The online CPUs of each core.
        is_turbo_off: Whether turbo is switched off for the whole machine.
        has_speed_select: Whether there is a device of Intel Speed Select.
        punits: What it reports, without any change of this daemon; empty if it reports
            nothing or denies access.
    """

    policies: tuple[CpufreqPolicy, ...] = ()
    idle: tuple[IdleStates, ...] = ()
    uncore: tuple[UncoreDomain, ...] = ()
    packages: tuple[CpuSet, ...] = ()
    cores: tuple[CpuSet, ...] = ()
    is_turbo_off: bool = False
    has_speed_select: bool = False
    punits: tuple[Punit, ...] = ()
