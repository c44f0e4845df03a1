"""Files of frequency policies: who shares a policy gets what asks for most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.cpu.facts import CpufreqPolicy, CpuKnobFacts
from nri_resmgr.classes.cpu.frequency import FrequencyWord
from nri_resmgr.classes.cpu.turbo import Arbiter, InUse, in_use, resolved
from nri_resmgr.values import CpuSet, KiloHertz
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen

PERFORMANCE: Final = "performance"
"""The governor, and the preference, that nothing asks more than."""

MOST_EPP: Final = 255
"""The preference that asks for least: the hardware has a byte for it."""

# From the one that asks for most; what is not listed asks for least.
_GOVERNORS: Final = (PERFORMANCE, "schedutil", "ondemand", "conservative", "userspace")

# What the words for preferences stand for, at least about (intel_pstate.c).
_EPPS: Final = {
    PERFORMANCE: 0,
    "balance_performance": 128,
    "default": 128,
    "balance_power": 192,
    "power": 255,
}
_MIDDLE: Final = 128

# These two numbers mean the same to every driver, and old ones take no numbers.
_WORDS: Final = {0: PERFORMANCE, 255: "power"}

# Stands for CPUs that are in no class: it leaves all as it is.
_NOBODY: Final = CpuClass(name="")


@frozen
class SharedPolicy(ByContent):
    """A frequency policy whose CPUs are in classes that want different things of it.

    Attributes:
        folder: Of the policy.
        cpus: Its online CPUs.
        classes: Their names; empty for CPUs that are in none.
    """

    folder: str
    cpus: CpuSet
    classes: tuple[str, ...]


def cpufreq_files(
    used: InUse, facts: CpuKnobFacts, arbiter: Arbiter
) -> Iterator[tuple[str, str]]:
    """Yield path and text of what classes want of frequency policies.

    A governor comes before what only goes with it.
    """
    for policy in facts.policies:
        if sharers := _sharers(policy, used):
            governor = _governor(sharers, policy)
            if governor:
                yield f"{policy.folder}/scaling_governor", governor
            if epp := _epp(sharers, policy, governor):
                yield f"{policy.folder}/energy_performance_preference", epp
            low, high = _limits(sharers, policy, arbiter)
            if low is not None:
                yield f"{policy.folder}/scaling_min_freq", str(low)
            if high is not None:
                yield f"{policy.folder}/scaling_max_freq", str(high)


def shared_policies(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    facts: CpuKnobFacts,
) -> tuple[SharedPolicy, ...]:
    """Return the policies on which not every class gets what it says."""
    used = in_use(classes, members)
    found = []
    for policy in facts.policies:
        sharers = _sharers(policy, used)
        if len({_wishes(one) for one in sharers}) > 1:
            names = tuple(sorted(one.name for one in sharers))
            found.append(SharedPolicy(policy.folder, policy.cpus, names))
    return tuple(found)


def epp_text(wanted: str | int, policy: CpufreqPolicy) -> str:
    """Return a preference as the driver of a policy takes it; empty if not at all."""
    if isinstance(wanted, int):
        if not policy.epps or wanted > MOST_EPP:
            return ""
        word = _WORDS.get(wanted, "")
        return word if word in policy.epps else str(wanted)
    return wanted if wanted in policy.epps else ""


def _sharers(policy: CpufreqPolicy, used: InUse) -> list[CpuClass]:
    """Return the classes of a policy's CPUs; none where no class has any."""
    found, left = [], policy.cpus
    for one, cpus in used:
        if cpus & policy.cpus:
            found.append(one)
            left -= cpus
    if found and left:
        found.append(_NOBODY)
    return found


def _wishes(one: CpuClass) -> tuple[object, ...]:
    competes = FrequencyWord.TURBO in (one.min, one.max)
    priority = one.turbo_priority if competes else 0
    return one.min, one.max, one.governor, one.epp, priority


def _governor(sharers: Sequence[CpuClass], policy: CpufreqPolicy) -> str:
    """Return the governor that asks for most; who says nothing asks for much."""
    words = [
        one.governor if one.governor in policy.governors else "" for one in sharers
    ]

    def place(word: str) -> float:
        if not word:
            return 0.5  # only performance is known to be more
        return _GOVERNORS.index(word) if word in _GOVERNORS else len(_GOVERNORS)

    return min(words, key=lambda word: (place(word), word))


def _epp(sharers: Sequence[CpuClass], policy: CpufreqPolicy, governor: str) -> str:
    if governor == PERFORMANCE:
        # The kernel sets this with the governor, and refuses any other. Who writes it
        # knows what it was before.
        return PERFORMANCE if PERFORMANCE in policy.epps else ""
    words = ["" if one.epp is None else epp_text(one.epp, policy) for one in sharers]
    return min(words, key=lambda word: (_demand(word) if word else 0.5, word))


def _demand(epp: str) -> int:
    return int(epp) if epp.isdecimal() else _EPPS.get(epp, _MIDDLE)


def _limits(
    sharers: Sequence[CpuClass], policy: CpufreqPolicy, arbiter: Arbiter
) -> tuple[KiloHertz | None, KiloHertz | None]:
    pairs = [_limits_of(one, policy, arbiter) for one in sharers]
    lows = [low for low, _ in pairs if low is not None]
    highs = [high for _, high in pairs if high is not None]
    # Who sets no maximum must not be slowed down by who does.
    is_capped = len(highs) == len(pairs)
    return max(lows, default=None), max(highs) if is_capped else None


def _limits_of(
    one: CpuClass, policy: CpufreqPolicy, arbiter: Arbiter
) -> tuple[KiloHertz | None, KiloHertz | None]:
    words = arbiter.words(policy, one)
    low = resolved(one.min, words, policy.min, policy.max)
    high = resolved(one.max, words, policy.min, policy.max)
    if low is not None and high is not None:
        low = min(low, high)
    return low, high
