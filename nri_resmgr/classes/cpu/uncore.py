"""Files of uncore domains: a die is as fast as the most demanding class on it."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.cpu.facts import CpuKnobFacts, UncoreDomain
from nri_resmgr.classes.cpu.frequency import FrequencyWord
from nri_resmgr.classes.cpu.turbo import InUse, Words, resolved
from nri_resmgr.values import KiloHertz


def uncore_files(used: InUse, facts: CpuKnobFacts) -> Iterator[tuple[str, str]]:
    """Yield path and text of what classes want of uncore domains.

    Source:
        nri-plugins and CRI Resource Manager: the largest minimum and the largest
        maximum of a die, within the limits at boot.
    """
    for domain in facts.uncore:
        words = uncore_words(domain, facts)
        pairs = [_limits(one, domain, words) for one, its in used if its & domain.cpus]
        low = max((low for low, _ in pairs if low is not None), default=None)
        high = max((high for _, high in pairs if high is not None), default=None)
        if low is not None:
            yield f"{domain.folder}/min_freq_khz", str(low)
        if high is not None:
            # One class wants at least what another one would not go beyond.
            yield f"{domain.folder}/max_freq_khz", str(max(high, low or high))


def uncore_words(domain: UncoreDomain, facts: CpuKnobFacts) -> Words:
    """Return what the words mean to a domain; it has no base but that of its CPUs."""
    bases = [p.base for p in facts.policies if p.base and p.cpus & domain.cpus]
    return {
        FrequencyWord.MIN: domain.min,
        FrequencyWord.BASE: max(bases, default=None),
        FrequencyWord.TURBO: domain.max,
    }


def _limits(
    one: CpuClass, domain: UncoreDomain, words: Words
) -> tuple[KiloHertz | None, KiloHertz | None]:
    low = resolved(one.uncore_min, words, domain.min, domain.max)
    high = resolved(one.uncore_max, words, domain.min, domain.max)
    if low is not None and high is not None:
        low = min(low, high)
    return low, high
