"""Facts of small machines for tests of CPU classes, and their files' names."""

from __future__ import annotations

from nri_resmgr.classes.cpu.facts import (
    CPU_ROOT,
    CPUFREQ_ROOT,
    UNCORE_ROOT,
    CpufreqPolicy,
    CpuKnobFacts,
    IdleStates,
    UncoreDomain,
)
from nri_resmgr.values import CpuSet, KiloHertz

EPPS = ("default", "performance", "balance_performance", "balance_power", "power")

MIN, BASE, TURBO = KiloHertz(800_000), KiloHertz(2_000_000), KiloHertz(3_800_000)


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def policy(text: str, **facts: object) -> CpufreqPolicy:
    """A policy of intel_pstate, but for *facts*."""
    found = cpus(text)
    usual: dict[str, object] = {
        "folder": f"{CPUFREQ_ROOT}/policy{found.first}",
        "cpus": found,
        "driver": "intel_pstate",
        "min": MIN,
        "max": TURBO,
        "base": BASE,
        "governors": ("performance", "powersave"),
        "governor": "powersave",
        "epps": EPPS,
    }
    return CpufreqPolicy(**{**usual, **facts})  # type: ignore[arg-type] # of many kinds


def uncore(package: int, text: str) -> UncoreDomain:
    folder = f"{UNCORE_ROOT}/package_{package:02}_die_00"
    return UncoreDomain(folder, cpus(text), MIN, KiloHertz(2_400_000))


#  package 0: cores {0,4} {1,5}     package 1: cores {2,6} {3,7}
SERVER = CpuKnobFacts(
    policies=tuple(policy(str(cpu)) for cpu in range(8)),
    idle=(IdleStates(cpus("0-7"), ("POLL", "C1", "C6")),),
    uncore=(uncore(0, "0-1,4-5"), uncore(1, "2-3,6-7")),
    packages=(cpus("0-1,4-5"), cpus("2-3,6-7")),
    cores=(cpus("0,4"), cpus("1,5"), cpus("2,6"), cpus("3,7")),
)

#  two CPUs share a frequency, and the driver reports little
OLD = CpuKnobFacts(
    policies=(
        policy(
            "0-1",
            driver="acpi-cpufreq",
            base=None,
            governors=("ondemand", "performance", "powersave", "schedutil"),
            governor="ondemand",
            epps=(),
        ),
    ),
    packages=(cpus("0-1"),),
    cores=(cpus("0"), cpus("1")),
)

#  a virtual machine: neither frequencies nor idle states
BARE = CpuKnobFacts(packages=(cpus("0-1"),), cores=(cpus("0"), cpus("1")))


def short(path: str) -> str:
    """Shorten a path of the CPU folder, so that a table fits."""
    return (
        path.removeprefix(f"{CPU_ROOT}/")
        .replace("cpufreq/policy", "p")
        .replace("intel_uncore_frequency/package_", "u")
        .replace("_die_00", "")
        .replace("/scaling_", "/")
        .replace("energy_performance_preference", "epp")
        .replace("cpuidle/state", "s")
    )
