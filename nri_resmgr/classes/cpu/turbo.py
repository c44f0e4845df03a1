"""Who may have turbo, and what the words for frequencies mean on some CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nri_resmgr.classes.cpu.cpu_class import CpuClass, TurboDomain
from nri_resmgr.classes.cpu.facts import CpufreqPolicy, CpuKnobFacts
from nri_resmgr.classes.cpu.frequency import Frequency, FrequencyWord
from nri_resmgr.values import CpuSet, KiloHertz

InUse: TypeAlias = Sequence[tuple[CpuClass, CpuSet]]
"""Classes with their CPUs, if they have any."""

Words: TypeAlias = Mapping[FrequencyWord, KiloHertz | None]
"""What the words mean; None where nobody knows."""


def in_use(classes: Mapping[str, CpuClass], members: Mapping[str, CpuSet]) -> InUse:
    """Return the classes that are known, by name, with their CPUs."""
    return [(classes[n], members[n]) for n in sorted(members) if n in classes]


class TurboArbiter:
    """Decides, domain by domain, whose word turbo means turbo.

    Source:
        nri-plugins, turbo priorities of CPU classes.
    """

    def __init__(self, used: InUse, facts: CpuKnobFacts, domain: TurboDomain) -> None:
        everything = CpuSet.union(policy.cpus for policy in facts.policies)
        is_split = domain is TurboDomain.PACKAGE and facts.packages
        domains = facts.packages if is_split else (everything,)
        self._tops = [
            (cpus, max((c.turbo_priority for c, its in used if its & cpus), default=0))
            for cpus in domains
        ]

    def top(self, policy: CpufreqPolicy) -> int:
        """Return the highest priority that is in use where a policy's CPUs are."""
        return max(
            (top for its, top in self._tops if not its.isdisjoint(policy.cpus)),
            default=0,
        )


def cpu_words(policy: CpufreqPolicy, one: CpuClass, top: int) -> Words:
    """Return what the words mean to a class on the CPUs of a policy.

    Who loses and has no base frequency that the driver tells keeps turbo.

    Args:
        policy: Whose limits are meant.
        one: The class.
        top: The highest priority there; see `TurboArbiter.top`.
    """
    wins = one.turbo_priority >= top
    return {
        FrequencyWord.MIN: policy.min,
        FrequencyWord.BASE: policy.base,
        FrequencyWord.TURBO: policy.max if wins else policy.base or policy.max,
    }


def resolved(
    wanted: Frequency | None,
    words: Words,
    low: KiloHertz | None,
    high: KiloHertz | None,
) -> KiloHertz | None:
    """Return a frequency between limits; None where nothing is wanted or known.

    Args:
        wanted: What the class says.
        words: What the words mean here.
        low: The lowest one that there is; None where nobody knows.
        high: The highest one.
    """
    found = words[wanted] if isinstance(wanted, FrequencyWord) else wanted
    if found is None:
        return None
    if high is not None:
        found = min(found, high)
    return found if low is None else max(found, low)
