"""Contents of host files that CPU classes ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, TurboDomain
from nri_resmgr.classes.cpu.cpufreq import cpufreq_files
from nri_resmgr.classes.cpu.facts import CPU_ROOT, CpuKnobFacts, UncoreDomain
from nri_resmgr.classes.cpu.turbo import (
    InUse,
    TurboArbiter,
    Words,
    in_use,
    resolved_range,
)
from nri_resmgr.values import CpuSet


def desired(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    facts: CpuKnobFacts,
    domain: TurboDomain = TurboDomain.PACKAGE,
) -> Mapping[str, str]:
    """Return the wanted contents of files by path, in the order of writing.

    Each CPU is in one class at most. CPUs of members that are not among *classes* stay
    unchanged; *domain* is the scope in which classes compete for turbo.

    Settings that a driver does not offer are left out, as are CPUs that it does not
    have; `nri_resmgr.classes.cpu.check` reports them.

    Source:
        Linux, Documentation/admin-guide/pm: cpufreq.rst, intel_pstate.rst,
        cpuidle.rst, intel_uncore_frequency_scaling.rst.
    """
    used = in_use(classes, members)
    arbiter = TurboArbiter(used, facts, domain)
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
        for group in facts.idle:
            flags = [
                (f"cpuidle/state{number}/disable", "01"[name in one.disabled_cstates])
                for number, name in enumerate(group.names)
            ]
            for cpu in group.cpus & cpus:
                for file, flag in flags:
                    yield f"{CPU_ROOT}/cpu{cpu}/{file}", flag


def uncore_files(used: InUse, facts: CpuKnobFacts) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files of uncore domains.

    Source:
        nri-plugins and CRI Resource Manager: the largest minimum and the largest
        maximum of a die, within the limits at boot.
    """
    for domain in facts.uncore:
        words = uncore_words(domain, facts)
        pairs = [
            resolved_range(
                (one.uncore_min, one.uncore_max), words, domain.min, domain.max
            )
            for one, its in used
            if its & domain.cpus
        ]
        low = max((low for low, _ in pairs if low is not None), default=None)
        high = max((high for _, high in pairs if high is not None), default=None)
        if low is not None:
            yield f"{domain.folder}/min_freq_khz", str(low)
        if high is not None:
            # The minimum of one class may be above the maximum of another.
            yield f"{domain.folder}/max_freq_khz", str(max(high, low or high))


def uncore_words(domain: UncoreDomain, facts: CpuKnobFacts) -> Words:
    """Return the frequencies of a domain; its base is that of its CPUs."""
    bases = [p.base for p in facts.policies if p.base and p.cpus & domain.cpus]
    return {
        FrequencyWord.MIN: domain.min,
        FrequencyWord.BASE: max(bases, default=None),
        FrequencyWord.TURBO: domain.max,
    }
