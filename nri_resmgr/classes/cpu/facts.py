"""What a machine lets us set about its CPUs, and within which limits."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.topology.speed_select import Punit
from nri_resmgr.values import CpuSet, KiloHertz

# Where the kernel has it all; the names of missing things in messages.
CPU_ROOT: Final = "/sys/devices/system/cpu"
CPUFREQ_ROOT: Final = f"{CPU_ROOT}/cpufreq"
UNCORE_ROOT: Final = f"{CPU_ROOT}/intel_uncore_frequency"
SST_DEVICE: Final = "/dev/isst_interface"


class CpufreqPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A frequency policy: CPUs that have their frequency in common.

    Attributes:
        folder: Of its files, as the host knows it.
        cpus: Its online CPUs; on most machines it is one.
        driver: The scaling driver.
        min: The lowest frequency of the hardware.
        max: The highest one, with turbo where that is on.
        base: The one that is guaranteed; None where the driver does not tell.
        governors: What the kernel has.
        governor: The one that was in force when we looked.
        epps: Words for the energy performance preference; none without it.
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
        cpus: They.
        names: Of the states, by the kernel's number: ``POLL``, ``C1``, ``C6``.
    """

    cpus: CpuSet
    names: tuple[str, ...]


class UncoreDomain(msgspec.Struct, frozen=True):
    """What is clocked together beside the cores, such as mesh and caches of a die.

    Attributes:
        folder: Of its files, as the host knows it.
        cpus: The online CPUs that are served by it.
        min: The lowest frequency at boot.
        max: The highest one at boot.
    """

    folder: str
    cpus: CpuSet
    min: KiloHertz | None = None
    max: KiloHertz | None = None


class CpuKnobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that CPU classes need to know of a machine.

    Attributes:
        policies: Frequency policies by lowest CPU; none without a cpufreq driver.
        idle: Idle states; none without a cpuidle driver.
        uncore: Uncore domains by folder; none without the driver.
        packages: The online CPUs of each package.
        cores: The online CPUs of each core.
        is_turbo_off: Whether turbo is switched off for the whole machine.
        has_speed_select: Whether there is a device of Intel Speed Select.
        punits: What it tells, as it was before we changed anything; none where it
            tells nothing, or not to us.
    """

    policies: tuple[CpufreqPolicy, ...] = ()
    idle: tuple[IdleStates, ...] = ()
    uncore: tuple[UncoreDomain, ...] = ()
    packages: tuple[CpuSet, ...] = ()
    cores: tuple[CpuSet, ...] = ()
    is_turbo_off: bool = False
    has_speed_select: bool = False
    punits: tuple[Punit, ...] = ()
