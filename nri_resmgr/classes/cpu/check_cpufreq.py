"""What frequency drivers cannot do of what CPU classes say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.cpu.cpufreq import MOST_EPP, PERFORMANCE, epp_text
from nri_resmgr.classes.cpu.facts import CPUFREQ_ROOT, CpufreqPolicy, CpuKnobFacts
from nri_resmgr.classes.cpu.frequency import Frequency, FrequencyWord
from nri_resmgr.classes.cpu.problems import Problem

_EPP: Final = "energyPerformancePreference"

_Why: TypeAlias = Callable[[CpufreqPolicy], str]


def cpufreq_problems(
    one: CpuClass, classes: Mapping[str, CpuClass], facts: CpuKnobFacts
) -> Iterator[Problem]:
    """Yield what cannot be done about frequencies, governors and preferences."""
    frequencies = {"minFreq": one.min, "maxFreq": one.max}
    asked = [key for key, wanted in frequencies.items() if wanted is not None]
    asked += ["freqGovernor"] if one.governor else []
    asked += [_EPP] if one.epp is not None else []
    if not facts.policies:
        why = "no cpufreq driver on this machine"
        for key in asked:
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


def _problem(
    one: CpuClass, key: str, file: str, why: str, *, is_error: bool
) -> Problem:
    return Problem(cpu_class=one.name, key=key, file=file, why=why, is_error=is_error)


def _found(
    one: CpuClass,
    place: tuple[str, str],
    policies: Sequence[CpufreqPolicy],
    why: _Why,
) -> Iterator[Problem]:
    """Yield one problem for all policies that have it; an error if all have.

    Args:
        one: The class.
        place: The key of the document, and the file of a policy.
        policies: All of them.
        why: What stands against it on one of them; empty for nothing.
    """
    key, file = place
    bad = [policy for policy in policies if why(policy)]
    if bad:
        where = "" if len(bad) == len(policies) else f", on {len(bad)} of "
        text = why(bad[0]) + (f"{where}{len(policies)} policies" if where else "")
        yield _problem(one, key, f"{bad[0].folder}/{file}", text, is_error=not where)


def _frequency(
    one: CpuClass, key: str, wanted: Frequency, facts: CpuKnobFacts
) -> Iterator[Problem]:
    if isinstance(wanted, FrequencyWord):
        field = "max" if wanted is FrequencyWord.TURBO else wanted.value
        place = (key, _FILES[wanted])

        def unknown(policy: CpufreqPolicy) -> str:
            if getattr(policy, field) is None:
                return f"the driver does not tell what {wanted} is; give a number"
            return ""

        yield from _found(one, place, facts.policies, unknown)
        return
    for policy in facts.policies:
        low, high = policy.min or 0, policy.max or wanted
        if not low <= wanted <= high:
            why = f"{wanted} kHz is outside {low} to {high}, and cut to it"
            yield _problem(one, key, policy.folder, why, is_error=False)
            return


_FILES: Final = {
    FrequencyWord.MIN: "cpuinfo_min_freq",
    FrequencyWord.BASE: "base_frequency",
    FrequencyWord.TURBO: "cpuinfo_max_freq",
}


def _turbo(
    one: CpuClass, classes: Mapping[str, CpuClass], facts: CpuKnobFacts
) -> Iterator[Problem]:
    if facts.is_turbo_off:
        why = "turbo is switched off for the whole machine"
        yield _problem(one, "maxFreq", CPUFREQ_ROOT, why, is_error=False)
    top = max(other.turbo_priority for other in classes.values())
    unknown = [policy for policy in facts.policies if policy.base is None]
    if one.turbo_priority < top and unknown:
        why = "the driver tells no base frequency: it keeps turbo beside a priority of"
        file = f"{unknown[0].folder}/base_frequency"
        yield _problem(one, "turboPriority", file, f"{why} {top}", is_error=False)


def _pair(one: CpuClass, policies: Sequence[CpufreqPolicy]) -> Iterator[Problem]:
    for policy in policies:
        words = {
            FrequencyWord.MIN: policy.min,
            FrequencyWord.BASE: policy.base,
            FrequencyWord.TURBO: policy.max,
        }
        low, high = (
            words[wanted] if isinstance(wanted, FrequencyWord) else wanted
            for wanted in (one.min, one.max)
        )
        if low is not None and high is not None and low > high:
            why = f"{low} kHz is above maxFreq, {high}, and cut to it"
            yield _problem(one, "minFreq", policy.folder, why, is_error=False)
            return


def _governor(one: CpuClass, policies: Sequence[CpufreqPolicy]) -> Iterator[Problem]:
    def missing(policy: CpufreqPolicy) -> str:
        if one.governor in policy.governors:
            return ""
        return f"no governor {one.governor!r}, there is {' '.join(policy.governors)}"

    place = ("freqGovernor", "scaling_available_governors")
    yield from _found(one, place, policies, missing)


def _preference(one: CpuClass, policies: Sequence[CpufreqPolicy]) -> Iterator[Problem]:
    wanted = "" if one.epp is None else one.epp
    yield from _ignored(one, wanted, policies)

    def missing(policy: CpufreqPolicy) -> str:
        if isinstance(wanted, int) or wanted in policy.epps or not policy.epps:
            return ""
        return f"no preference {wanted!r}, there is {' '.join(policy.epps)}"

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
) -> Iterator[Problem]:
    """Yield what nri-plugins takes and never writes: its documents shall work."""
    deaf = [policy for policy in policies if not policy.epps]
    if deaf:
        why = f"driver {deaf[0].driver or 'unknown'} takes no preference"
        file = f"{deaf[0].folder}/energy_performance_preference"
        yield _problem(one, _EPP, file, why, is_error=False)
    elif isinstance(wanted, int) and wanted > MOST_EPP:
        why = f"{wanted} is above {MOST_EPP}, and not written"
        yield _problem(one, _EPP, CPUFREQ_ROOT, why, is_error=False)
