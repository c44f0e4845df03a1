"""Host files as CPU classes want them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.classes.cpu.cpu_class import CpuClass, TurboDomain
from nri_resmgr.classes.cpu.cpufreq import cpufreq_files
from nri_resmgr.classes.cpu.facts import CPU_ROOT, CpuKnobFacts
from nri_resmgr.classes.cpu.turbo import Arbiter, InUse, in_use
from nri_resmgr.classes.cpu.uncore import uncore_files
from nri_resmgr.values import CpuSet


def desired(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    facts: CpuKnobFacts,
    domain: TurboDomain = TurboDomain.PACKAGE,
) -> Mapping[str, str]:
    """Return what has to be in which file, in the order of writing.

    What a driver does not offer is left out, and so are CPUs that it does not know;
    `check` tells beforehand.

    Args:
        classes: By name.
        members: Class to its CPUs, each of which is in one class at most. A class
            that is not among *classes* leaves its CPUs alone.
        facts: Of the machine.
        domain: Among whose CPUs classes compete for turbo.

    Returns:
        Path on the host to text.

    Source:
        Linux, Documentation/admin-guide/pm: cpufreq.rst, intel_pstate.rst,
        cpuidle.rst, intel_uncore_frequency_scaling.rst.
    """
    used = in_use(classes, members)
    arbiter = Arbiter(used, facts, domain)
    return {
        **dict(cpufreq_files(used, facts, arbiter)),
        **dict(_idle_files(used, facts)),
        **dict(uncore_files(used, facts)),
    }


def _idle_files(used: InUse, facts: CpuKnobFacts) -> Iterator[tuple[str, str]]:
    for one, cpus in used:
        if one.wake_latency:
            for cpu in cpus:
                path = f"{CPU_ROOT}/cpu{cpu}/power/pm_qos_resume_latency_us"
                yield path, one.wake_latency
        if one.disabled_cstates is None:
            continue
        for alike in facts.idle:
            flags = [
                (f"cpuidle/state{number}/disable", "01"[name in one.disabled_cstates])
                for number, name in enumerate(alike.names)
            ]
            for cpu in alike.cpus & cpus:
                for file, flag in flags:
                    yield f"{CPU_ROOT}/cpu{cpu}/{file}", flag
