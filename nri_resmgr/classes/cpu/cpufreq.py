"""Files of frequency policies; of classes that share one, the most demanding wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord
from nri_resmgr.classes.cpu.facts import CpufreqPolicy, CpuKnobFacts
from nri_resmgr.classes.cpu.turbo import (
    InUse,
    Range,
    TurboArbiter,
    cpu_words,
    in_use,
    resolved_range,
)
from nri_resmgr.values import CpuSet

PERFORMANCE: Final = "performance"
"""The most demanding governor, and the most demanding preference."""

MOST_EPP: Final = 255
"""The least demanding preference: the hardware has a byte for it."""

# The most demanding first; those not listed are the least demanding.
_GOVERNORS: Final = (PERFORMANCE, "schedutil", "ondemand", "conservative", "userspace")

# Approximate numbers for the words (intel_pstate.c).
_EPPS: Final = {
    PERFORMANCE: 0,
    "balance_performance": 128,
    "default": 128,
    "balance_power": 192,
    "power": 255,
}
_MIDDLE: Final = 128

# These words mean the same to every driver, and old drivers accept no numbers.
_WORDS: Final = {0: PERFORMANCE, 255: "power"}

# Stands for CPUs without a class.
_NO_CLASS: Final = CpuClass(name="")


class SharedPolicy(msgspec.Struct, frozen=True):
    """A frequency policy whose CPUs are in classes with different settings.

    Attributes:
        classes: Names of the classes; empty text for CPUs without one.
    """

    folder: str
    cpus: CpuSet
    classes: tuple[str, ...]


def cpufreq_files(
    used: InUse, facts: CpuKnobFacts, arbiter: TurboArbiter
) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files of frequency policies.

    A governor comes before settings that depend on it.
    """
    homes = _homes(used)
    # Computed once for equal policies: there may be one for each of hundreds of CPUs.
    known: dict[object, tuple[tuple[str, str], ...]] = {}
    for policy in facts.policies:
        if sharers := _sharers(policy, homes):
            top = arbiter.top(policy)
            limits = (policy.min, policy.max, policy.base)
            key = (tuple(sharers), top, *limits, policy.governors, policy.epps)
            if key not in known:
                known[key] = tuple(_texts(tuple(sharers.values()), policy, top))
            for name, text in known[key]:
                yield f"{policy.folder}/{name}", text


def shared_policies(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    facts: CpuKnobFacts,
) -> tuple[SharedPolicy, ...]:
    """Return the policies shared by classes with different settings."""
    homes = _homes(in_use(classes, members))
    found = []
    for policy in facts.policies:
        sharers = _sharers(policy, homes)
        if len(sharers) > 1 and len(set(map(_requested, sharers.values()))) > 1:
            names = tuple(sorted(sharers))
            found.append(SharedPolicy(policy.folder, policy.cpus, names))
    return tuple(found)


def epp_text(wanted: str | int, policy: CpufreqPolicy) -> str:
    """Return a preference in the driver's form; empty if it accepts none such."""
    if isinstance(wanted, int):
        if not policy.epps or wanted > MOST_EPP:
            return ""
        word = _WORDS.get(wanted, "")
        return word if word in policy.epps else str(wanted)
    return wanted if wanted in policy.epps else ""


def _homes(used: InUse) -> Mapping[int, CpuClass]:
    return {cpu: one for one, cpus in used for cpu in cpus}


def _sharers(
    policy: CpufreqPolicy, homes: Mapping[int, CpuClass]
) -> Mapping[str, CpuClass]:
    """Return the classes of a policy's CPUs by name; empty if none has a class."""
    found = [homes.get(cpu, _NO_CLASS) for cpu in policy.cpus]
    sharers = {one.name: one for one in found}
    return {} if sharers.keys() == {_NO_CLASS.name} else sharers


def _texts(
    sharers: Sequence[CpuClass], policy: CpufreqPolicy, top: int
) -> Iterator[tuple[str, str]]:
    if governor := _governor(sharers, policy):
        yield "scaling_governor", governor
    if epp := _epp(sharers, policy, governor):
        yield "energy_performance_preference", epp
    low, high = _limits(sharers, policy, top)
    if low is not None:
        yield "scaling_min_freq", str(low)
    if high is not None:
        yield "scaling_max_freq", str(high)


def _requested(one: CpuClass) -> tuple[object, ...]:
    competes = FrequencyWord.TURBO in (one.min, one.max)
    priority = one.turbo_priority if competes else 0
    return one.min, one.max, one.governor, one.epp, priority


def _governor(sharers: Sequence[CpuClass], policy: CpufreqPolicy) -> str:
    """Return the most demanding governor; none set ranks after performance only."""
    words = [
        one.governor if one.governor in policy.governors else "" for one in sharers
    ]

    def rank(word: str) -> float:
        if not word:
            return 0.5  # only performance is known to demand more
        return _GOVERNORS.index(word) if word in _GOVERNORS else len(_GOVERNORS)

    return min(words, key=lambda word: (rank(word), word))


def _epp(sharers: Sequence[CpuClass], policy: CpufreqPolicy, governor: str) -> str:
    if governor == PERFORMANCE:
        # The kernel sets this with the governor, and refuses any other. It is written
        # all the same, so that the original value is recorded and restored.
        return PERFORMANCE if PERFORMANCE in policy.epps else ""
    words = ["" if one.epp is None else epp_text(one.epp, policy) for one in sharers]
    return min(words, key=lambda word: (_demand(word) if word else 0.5, word))


def _demand(epp: str) -> int:
    return int(epp) if epp.isdecimal() else _EPPS.get(epp, _MIDDLE)


def _limits(sharers: Sequence[CpuClass], policy: CpufreqPolicy, top: int) -> Range:
    pairs = []
    for one in sharers:
        words = cpu_words(policy, one, top)
        wanted = (one.min, one.max)
        pairs.append(resolved_range(wanted, words, policy.min, policy.max))
    lows = [low for low, _ in pairs if low is not None]
    highs = [high for _, high in pairs if high is not None]
    # A class without a maximum must not be slowed down by one that has one.
    is_capped = len(highs) == len(pairs)
    return max(lows, default=None), max(highs) if is_capped else None
