"""CPU classes held against a machine, before any CPU is in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from nri_resmgr.classes.cpu.check_cpufreq import cpufreq_problems
from nri_resmgr.classes.cpu.check_sst import sst_problems
from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.cpu.facts import CPU_ROOT, UNCORE_ROOT, CpuKnobFacts
from nri_resmgr.classes.cpu.frequency import FrequencyWord
from nri_resmgr.classes.cpu.problems import Problem
from nri_resmgr.classes.cpu.uncore import uncore_words

_IDLE: Final = f"{CPU_ROOT}/cpu*/cpuidle"


def check(classes: Mapping[str, CpuClass], facts: CpuKnobFacts) -> tuple[Problem, ...]:
    """Return what this machine cannot do of what classes say, class by class.

    An error is what has no effect at all: the driver is missing, or no CPU has such
    a governor, preference, idle state or class of service. A warning is what has an
    effect on some CPUs only, or within limits, or will be refused by the kernel as
    things are. No idle states to disable are a warning, too: no CPU enters them.
    """
    return tuple(
        chain.from_iterable(
            chain(
                cpufreq_problems(one, classes, facts),
                _idle_problems(one, facts),
                _uncore_problems(one, facts),
                sst_problems(one, facts),
            )
            for one in classes.values()
        )
    )


def _idle_problems(one: CpuClass, facts: CpuKnobFacts) -> Iterator[Problem]:
    known = list(dict.fromkeys(name for same in facts.idle for name in same.names))
    for name in one.disabled_cstates or ():
        if name not in known:
            missing = "no cpuidle driver, so no CPU has idle states"
            why = f"no state {name!r}, there is {' '.join(known)}" if known else missing
            yield Problem(
                cpu_class=one.name,
                key="disabledCstates",
                file=f"{_IDLE}/state*/name" if known else _IDLE,
                why=why,
                is_error=bool(known),
            )
            if not known:
                return


def _uncore_problems(one: CpuClass, facts: CpuKnobFacts) -> Iterator[Problem]:
    limits = {"uncoreMinFreq": one.uncore_min, "uncoreMaxFreq": one.uncore_max}

    def problem(key: str, file: str, why: str, *, is_error: bool) -> Problem:
        return Problem(
            cpu_class=one.name, key=key, file=file, why=why, is_error=is_error
        )

    for key, wanted in limits.items():
        if wanted is None:
            continue
        if not facts.uncore:
            why = "no driver for uncore frequencies; load intel_uncore_frequency"
            yield problem(key, UNCORE_ROOT, why, is_error=True)
            continue
        for domain in facts.uncore:
            low, high = domain.min or 0, domain.max or float("inf")
            if isinstance(wanted, FrequencyWord):
                if uncore_words(domain, facts)[wanted] is None:
                    why = f"nobody knows what {wanted} is here; give a number"
                    yield problem(key, domain.folder, why, is_error=False)
                    break
            elif not low <= wanted <= high:
                why = f"{wanted} kHz is outside {low} to {high}, and cut to it"
                yield problem(key, domain.folder, why, is_error=False)
                break
