"""Settings of CPU classes that a machine cannot apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass, Frequency, FrequencyWord
from nri_resmgr.classes.cpu.cpufreq import MOST_EPP, PERFORMANCE, epp_text
from nri_resmgr.classes.cpu.desired import uncore_words
from nri_resmgr.classes.cpu.facts import (
    CPU_ROOT,
    CPUFREQ_ROOT,
    SST_DEVICE,
    UNCORE_ROOT,
    CpufreqPolicy,
    CpuKnobFacts,
)
from nri_resmgr.classes.cpu.sst import CLOSES
from nri_resmgr.classes.cpu.turbo import cpu_words
from nri_resmgr.topology.speed_select import Feature, Punit
from nri_resmgr.values import KiloHertz

_IDLE: Final = f"{CPU_ROOT}/cpu*/cpuidle"
_EPP: Final = "energyPerformancePreference"

# The file of a policy from which the kernel's value of a word is read.
_FILES: Final = {
    FrequencyWord.MIN: "cpuinfo_min_freq",
    FrequencyWord.BASE: "base_frequency",
    FrequencyWord.TURBO: "cpuinfo_max_freq",
}

_Why: TypeAlias = Callable[[CpufreqPolicy], str]


class CpuClassProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a class that a machine cannot apply, or only in part.

    Attributes:
        key: The key in the document, as ``maxFreq``.
        file: The kernel's file for the setting, or for its accepted values.
        is_error: Whether the setting has no effect at all. Otherwise it is applied in
            part, or within limits.
    """

    cpu_class: str
    key: str
    file: str
    why: str
    is_error: bool

    def __str__(self) -> str:
        return f"CPU class {self.cpu_class}, {self.key}: {self.why} ({self.file})"


def check(
    classes: Mapping[str, CpuClass], facts: CpuKnobFacts
) -> tuple[CpuClassProblem, ...]:
    """Return the settings that this machine cannot apply, class by class.

    A setting that has no effect at all is an error: its driver is missing, or no CPU
    has such a governor, preference, idle state or class of service. It is a warning if
    the setting applies to some CPUs only, is changed to a limit of the hardware, or is
    refused by the kernel at present. To disable an idle state on a machine without idle
    states is a warning as well: no CPU enters one there.
    """
    return tuple(
        chain.from_iterable(
            chain(
                _cpufreq_problems(one, classes, facts),
                _idle_problems(one, facts),
                _uncore_problems(one, facts),
                _sst_problems(one, facts),
            )
            for one in classes.values()
        )
    )


def _problem(
    one: CpuClass, key: str, file: str, why: str, *, is_error: bool
) -> CpuClassProblem:
    return CpuClassProblem(
        cpu_class=one.name, key=key, file=file, why=why, is_error=is_error
    )


def _outside(wanted: KiloHertz, low: KiloHertz | None, high: KiloHertz | None) -> str:
    """Return why a frequency is changed to a limit; empty if it is within them."""
    if low and wanted < low:
        return f"{_ghz(wanted)} is below {_ghz(low)}, which is set"
    if high and wanted > high:
        return f"{_ghz(wanted)} is above {_ghz(high)}, which is set"
    return ""


def _ghz(frequency: KiloHertz) -> str:
    return f"{frequency / 1_000_000:g} GHz"


def _idle_problems(one: CpuClass, facts: CpuKnobFacts) -> Iterator[CpuClassProblem]:
    known = list(dict.fromkeys(name for same in facts.idle for name in same.names))
    for name in one.disabled_cstates or ():
        if name not in known:
            why = "no cpuidle driver, so no CPU has idle states"
            if known:
                why = f"no state {name!r}; available: {' '.join(known)}"
            file = f"{_IDLE}/state*/name" if known else _IDLE
            yield _problem(one, "disabledCstates", file, why, is_error=bool(known))
            if not known:
                return


def _uncore_problems(one: CpuClass, facts: CpuKnobFacts) -> Iterator[CpuClassProblem]:
    limits = {"uncoreMinFreq": one.uncore_min, "uncoreMaxFreq": one.uncore_max}
    for key, wanted in limits.items():
        if wanted is None:
            continue
        if not facts.uncore:
            why = "no driver for uncore frequencies; load intel_uncore_frequency"
            yield _problem(one, key, UNCORE_ROOT, why, is_error=True)
            continue
        for domain in facts.uncore:
            if isinstance(wanted, FrequencyWord):
                if uncore_words(domain, facts)[wanted] is None:
                    why = f"{wanted} is unknown here; give a number"
                    yield _problem(one, key, domain.folder, why, is_error=False)
                    break
            elif why := _outside(wanted, domain.min, domain.max):
                yield _problem(one, key, domain.folder, why, is_error=False)
                break


def _cpufreq_problems(
    one: CpuClass, classes: Mapping[str, CpuClass], facts: CpuKnobFacts
) -> Iterator[CpuClassProblem]:
    """Yield problems with frequencies, governors and preferences."""
    frequencies = {"minFreq": one.min, "maxFreq": one.max}
    requested = [key for key, wanted in frequencies.items() if wanted is not None]
    requested += ["freqGovernor"] if one.governor else []
    requested += [_EPP] if one.epp is not None else []
    if not facts.policies:
        why = "no cpufreq driver on this machine"
        for key in requested:
            yield _problem(one, key, CPUFREQ_ROOT, why, is_error=True)
        return
    for key, wanted in frequencies.items():
        if wanted is not None:
            yield from _frequency(one, key, wanted, facts)
    if FrequencyWord.TURBO in frequencies.values():
        yield from _turbo(one, classes, facts)
    yield from _pair(one, facts.policies)
    if one.governor:
        yield from _governor(one, facts.policies)
    if one.epp is not None:
        yield from _preference(one, facts.policies)


def _found(
    one: CpuClass,
    place: tuple[str, str],
    policies: Sequence[CpufreqPolicy],
    why: _Why,
) -> Iterator[CpuClassProblem]:
    """Yield one problem for all policies that have it; an error if all have."""
    key, file = place
    bad = [policy for policy in policies if why(policy)]
    if bad:
        where = "" if len(bad) == len(policies) else f", on {len(bad)} of "
        text = why(bad[0]) + (f"{where}{len(policies)} policies" if where else "")
        yield _problem(one, key, f"{bad[0].folder}/{file}", text, is_error=not where)


def _frequency(
    one: CpuClass, key: str, wanted: Frequency, facts: CpuKnobFacts
) -> Iterator[CpuClassProblem]:
    if isinstance(wanted, FrequencyWord):
        field = "max" if wanted is FrequencyWord.TURBO else wanted.value
        place = (key, _FILES[wanted])

        def unknown(policy: CpufreqPolicy) -> str:
            if getattr(policy, field) is None:
                return f"the driver does not report {wanted}; give a number"
            return ""

        yield from _found(one, place, facts.policies, unknown)
        return
    for policy in facts.policies:
        if why := _outside(wanted, policy.min, policy.max):
            yield _problem(one, key, policy.folder, why, is_error=False)
            return


def _turbo(
    one: CpuClass, classes: Mapping[str, CpuClass], facts: CpuKnobFacts
) -> Iterator[CpuClassProblem]:
    if facts.is_turbo_off:
        why = "turbo is switched off for the whole machine"
        yield _problem(one, "maxFreq", CPUFREQ_ROOT, why, is_error=False)
    top = max(other.turbo_priority for other in classes.values())
    unknown = [policy for policy in facts.policies if policy.base is None]
    if one.turbo_priority < top and unknown:
        why = "the driver reports no base frequency: turbo stays beside a priority of"
        file = f"{unknown[0].folder}/base_frequency"
        yield _problem(one, "turboPriority", file, f"{why} {top}", is_error=False)


def _pair(
    one: CpuClass, policies: Sequence[CpufreqPolicy]
) -> Iterator[CpuClassProblem]:
    for policy in policies:
        # As without other classes: this is about the class itself.
        words = cpu_words(policy, one, one.turbo_priority)
        low, high = (
            words[wanted] if isinstance(wanted, FrequencyWord) else wanted
            for wanted in (one.min, one.max)
        )
        if low is not None and high is not None and low > high:
            why = f"{_ghz(low)} is above maxFreq, {_ghz(high)}, which is set"
            yield _problem(one, "minFreq", policy.folder, why, is_error=False)
            return


def _governor(
    one: CpuClass, policies: Sequence[CpufreqPolicy]
) -> Iterator[CpuClassProblem]:
    def missing(policy: CpufreqPolicy) -> str:
        if one.governor in policy.governors:
            return ""
        return f"no governor {one.governor!r}; available: {' '.join(policy.governors)}"

    place = ("freqGovernor", "scaling_available_governors")
    yield from _found(one, place, policies, missing)


def _preference(
    one: CpuClass, policies: Sequence[CpufreqPolicy]
) -> Iterator[CpuClassProblem]:
    wanted = "" if one.epp is None else one.epp
    yield from _ignored(one, wanted, policies)

    def missing(policy: CpufreqPolicy) -> str:
        if isinstance(wanted, int) or wanted in policy.epps or not policy.epps:
            return ""
        return f"no preference {wanted!r}; available: {' '.join(policy.epps)}"

    place = (_EPP, "energy_performance_available_preferences")
    yield from _found(one, place, policies, missing)
    if wanted in (0, PERFORMANCE):
        return
    for policy in policies:
        governor = one.governor or policy.governor
        if governor == PERFORMANCE and epp_text(wanted, policy):
            why = f"the kernel refuses it beside the governor {PERFORMANCE}"
            help_ = "" if one.governor else "; set another freqGovernor"
            file = f"{policy.folder}/energy_performance_preference"
            yield _problem(one, _EPP, file, why + help_, is_error=False)
            return


def _ignored(
    one: CpuClass, wanted: str | int, policies: Sequence[CpufreqPolicy]
) -> Iterator[CpuClassProblem]:
    """Yield warnings about preferences that cannot be written.

    No errors, as nri-plugins accepts them: its documents must work here.
    """
    without = [policy for policy in policies if not policy.epps]
    if without:
        driver = without[0].driver or "unknown"
        why = f"driver {driver} takes no preference"
        file = f"{without[0].folder}/energy_performance_preference"
        yield _problem(one, _EPP, file, why, is_error=False)
    elif isinstance(wanted, int) and wanted > MOST_EPP:
        why = f"{wanted} is above {MOST_EPP}, so it is not written"
        yield _problem(one, _EPP, CPUFREQ_ROOT, why, is_error=False)


def _sst_problems(one: CpuClass, facts: CpuKnobFacts) -> Iterator[CpuClassProblem]:
    """Yield problems with priorities and classes of service of Speed Select."""
    is_managed = one.pct_priority is not None
    if not is_managed and one.sst_clos is None:
        return
    key = "pctPriority" if is_managed else "sstClosID"
    if not facts.punits:
        missing = "no driver of Intel Speed Select; load the isst_* modules of this CPU"
        silent = "the driver of Intel Speed Select reports nothing, or denies access"
        why = silent if facts.has_speed_select else missing
        yield _problem(one, key, SST_DEVICE, why, is_error=True)
        return
    if one.sst_clos is not None and one.sst_clos >= CLOSES:
        why = f"{one.sst_clos} is no class of service, expected 0 to {CLOSES - 1}"
        yield _problem(one, key, SST_DEVICE, why, is_error=True)
    faults = _faults(facts.punits, is_managed=is_managed)
    for feature, bad, is_final in faults:
        if bad:
            names = " ".join(f"{punit.package}/{punit.id}" for punit in bad)
            is_error = is_final and len(bad) == len(facts.punits)
            why = f"{feature} on punit {names}"
            yield _problem(one, key, SST_DEVICE, why, is_error=is_error)


def _faults(
    punits: Sequence[Punit], *, is_managed: bool
) -> Iterator[tuple[str, list[Punit], bool]]:
    """Yield a fault, the punits that have it, and whether it is permanent."""
    unsupported = [p for p in punits if p.power is Feature.UNSUPPORTED]
    yield "core power (SST-CP) is not supported", unsupported, True
    if is_managed:
        without = [p for p in punits if p.turbo is Feature.UNSUPPORTED]
        yield "turbo frequency (SST-TF) is not supported", without, True
        return
    off = [p for p in punits if p.power is Feature.OFF]
    yield "core power (SST-CP) is off, so classes of service do nothing", off, False
    off = [p for p in punits if p.turbo is Feature.OFF]
    yield "turbo frequency (SST-TF) is off, so no core has more turbo", off, False
