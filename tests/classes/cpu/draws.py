"""Drawn CPU classes, machines, and members of classes."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord
from nri_resmgr.classes.cpu.facts import CpufreqPolicy, CpuKnobFacts, IdleStates
from nri_resmgr.values import CpuSet, KiloHertz
from tests.classes.cpu.machines import EPPS, SERVER, policy, uncore

COUNT = 8
NAMES = ("a", "b", "c")
STATES = ("POLL", "C1", "C1E", "C6")
GOVERNORS = ("conservative", "ondemand", "performance", "powersave", "schedutil")

FREQUENCIES = (
    st.none()
    | st.sampled_from(FrequencyWord)
    | st.integers(1, 50).map(lambda n: KiloHertz(n * 100_000))
)

CLASSES = st.fixed_dictionaries(
    {
        name: st.builds(
            CpuClass,
            name=st.just(name),
            min=FREQUENCIES,
            max=FREQUENCIES,
            governor=st.sampled_from(("", *GOVERNORS, "unknown")),
            epp=st.none() | st.integers(0, 300) | st.sampled_from((*EPPS, "unknown")),
            uncore_min=FREQUENCIES,
            uncore_max=FREQUENCIES,
            disabled_cstates=st.none()
            | st.lists(st.sampled_from((*STATES, "C9")), max_size=3).map(tuple),
            turbo_priority=st.integers(0, 2),
        )
        for name in NAMES
    }
)


def sets(homes: list[str]) -> dict[str, CpuSet]:
    """Return the members of each class, given the class of each CPU in turn."""
    return {
        name: CpuSet.from_iterable(
            cpu for cpu, home in enumerate(homes) if home == name
        )
        for name in NAMES
    }


MEMBERS = st.lists(
    st.sampled_from(("", *NAMES, *NAMES)), min_size=COUNT, max_size=COUNT
).map(sets)


@st.composite
def _policies(draw: st.DrawFn) -> tuple[CpufreqPolicy, ...]:
    found = []
    for cpus in draw(st.sampled_from((_SINGLE, _PAIRS, _ALL))):
        base = draw(st.sampled_from((None, KiloHertz(1_500_000), KiloHertz(2_000_000))))
        epps = draw(st.sampled_from(((), EPPS)))
        governors = draw(st.sampled_from((GOVERNORS, ("performance", "powersave"))))
        found.append(policy(cpus, base=base, epps=epps, governors=governors))
    return tuple(found)


_SINGLE = tuple(str(cpu) for cpu in range(COUNT))
_PAIRS = ("0,4", "1,5", "2,6", "3,7")
_ALL = ("0-7",)


@st.composite
def machines(draw: st.DrawFn) -> CpuKnobFacts:
    """Draw drivers for a server of two packages."""
    return msgspec.structs.replace(
        SERVER,
        policies=draw(_policies()),
        idle=(
            IdleStates(CpuSet.parse("0-3"), STATES),
            IdleStates(CpuSet.parse("4-7"), draw(st.sampled_from((STATES, ("C1",))))),
        ),
        uncore=draw(
            st.sampled_from(
                ((), (uncore(0, "0-1,4-5"), uncore(1, "2-3,6-7")), (uncore(0, "0-7"),))
            )
        ),
    )
