"""Files of frequency policies: who shares a policy gets what asks for most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.cpu.facts import CpufreqPolicy, CpuKnobFacts
from nri_resmgr.classes.cpu.frequency import FrequencyWord
from nri_resmgr.classes.cpu.turbo import (
    InUse,
    TurboArbiter,
    cpu_words,
    in_use,
    resolved,
)
from nri_resmgr.values import CpuSet, KiloHertz

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


class SharedPolicy(msgspec.Struct, frozen=True):
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
    used: InUse, facts: CpuKnobFacts, arbiter: TurboArbiter
) -> Iterator[tuple[str, str]]:
    """Yield path and text of what classes want of frequency policies.

    A governor comes before what only goes with it.
    """
    homes = _homes(used)
    # Most policies are alike, and there may be one for each of hundreds of CPUs.
    known: dict[object, tuple[tuple[str, str], ...]] = {}
    for policy in facts.policies:
        if sharers := _sharers(policy, homes):
            top = arbiter.top(policy)
            key = (tuple(sharers), top, *_limits_told(policy))
            if key not in known:
                requests = tuple(sharers.values())
                known[key] = tuple(_texts(requests, policy, top))
            for name, text in known[key]:
                yield f"{policy.folder}/{name}", text


def shared_policies(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    facts: CpuKnobFacts,
) -> tuple[SharedPolicy, ...]:
    """Return the policies on which not every class gets what it says."""
    homes = _homes(in_use(classes, members))
    found = []
    for policy in facts.policies:
        sharers = _sharers(policy, homes)
        if len(sharers) > 1 and len(set(map(_requested, sharers.values()))) > 1:
            names = tuple(sorted(sharers))
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


def _homes(used: InUse) -> Mapping[int, CpuClass]:
    return {cpu: one for one, cpus in used for cpu in cpus}


def _sharers(
    policy: CpufreqPolicy, homes: Mapping[int, CpuClass]
) -> Mapping[str, CpuClass]:
    """Return the classes of a policy's CPUs; none where no class has any."""
    found = [homes.get(cpu, _NOBODY) for cpu in policy.cpus]
    sharers = {one.name: one for one in found}
    return {} if sharers.keys() == {_NOBODY.name} else sharers


def _limits_told(policy: CpufreqPolicy) -> tuple[object, ...]:
    return policy.min, policy.max, policy.base, policy.governors, policy.epps


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
    sharers: Sequence[CpuClass], policy: CpufreqPolicy, top: int
) -> tuple[KiloHertz | None, KiloHertz | None]:
    pairs = [_limits_of(one, policy, top) for one in sharers]
    lows = [low for low, _ in pairs if low is not None]
    highs = [high for _, high in pairs if high is not None]
    # Who sets no maximum must not be slowed down by who does.
    is_capped = len(highs) == len(pairs)
    return max(lows, default=None), max(highs) if is_capped else None


def _limits_of(
    one: CpuClass, policy: CpufreqPolicy, top: int
) -> tuple[KiloHertz | None, KiloHertz | None]:
    words = cpu_words(policy, one, top)
    low = resolved(one.min, words, policy.min, policy.max)
    high = resolved(one.max, words, policy.min, policy.max)
    if low is not None and high is not None:
        low = min(low, high)
    return low, high
