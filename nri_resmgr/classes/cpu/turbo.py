"""Priorities for turbo, and the meaning of words for frequencies on some CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nri_resmgr.classes.cpu.cpu_class import (
    CpuClass,
    Frequency,
    FrequencyWord,
    TurboDomain,
)
from nri_resmgr.classes.cpu.facts import CpufreqPolicy, CpuKnobFacts
from nri_resmgr.values import CpuSet, KiloHertz

InUse: TypeAlias = Sequence[tuple[CpuClass, CpuSet]]
"""Classes in use, each with its CPUs."""

Range: TypeAlias = tuple[KiloHertz | None, KiloHertz | None]
"""Minimum and maximum; None where it is not set."""

Words: TypeAlias = Mapping[FrequencyWord, KiloHertz | None]
"""Frequencies that the words mean; None where unknown."""


def in_use(classes: Mapping[str, CpuClass], members: Mapping[str, CpuSet]) -> InUse:
    """Return the classes that have CPUs, in the order of their names."""
    return [(classes[n], members[n]) for n in sorted(members) if n in classes]


class TurboArbiter:
    """Finds the highest turbo priority in use in each domain.

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
        """Return the highest priority in use in the domains of a policy's CPUs."""
        return max(
            (top for its, top in self._tops if not its.isdisjoint(policy.cpus)),
            default=0,
        )


def cpu_words(policy: CpufreqPolicy, one: CpuClass, top: int) -> Words:
    """Return the frequencies that a class gets on the CPUs of a policy.

    A class of lower priority gets the base frequency as turbo, if it is known.

    *top* is the highest priority in use there; see `TurboArbiter.top`.
    """
    wins = one.turbo_priority >= top
    return {
        FrequencyWord.MIN: policy.min,
        FrequencyWord.BASE: policy.base,
        FrequencyWord.TURBO: policy.max if wins else policy.base or policy.max,
    }


def resolved_range(
    wanted: tuple[Frequency | None, Frequency | None],
    words: Words,
    low: KiloHertz | None,
    high: KiloHertz | None,
) -> Range:
    """Return the minimum and maximum of a class, with the minimum not above the other.

    *low* and *high* are the limits; None where they are unknown.
    """
    least, most = (_resolved(one, words, low, high) for one in wanted)
    if least is not None and most is not None:
        least = min(least, most)
    return least, most


def _resolved(
    wanted: Frequency | None,
    words: Words,
    low: KiloHertz | None,
    high: KiloHertz | None,
) -> KiloHertz | None:
    found = words[wanted] if isinstance(wanted, FrequencyWord) else wanted
    if found is None:
        return None
    if high is not None:
        found = min(found, high)
    return found if low is None else max(found, low)
