"""Speed Select for CPU classes: classes of service, and the cores in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, PctPriority
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.classes.cpu.turbo import InUse, Words, in_use, resolved
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit
from nri_resmgr.values import CpuSet, KiloHertz

CLOS_OF: Final = {PctPriority.HIGH: 0, PctPriority.LOW: 3}
"""Class of service of each priority; the hardware starts with all cores in 0."""

CLOSES: Final = 4

_NO_LIMIT: Final = 255  # for a class of service, in steps of 100 MHz


def desired_punits(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    facts: CpuKnobFacts,
) -> tuple[Punit, ...]:
    """Return the wanted state of punits; empty if no class uses Speed Select.

    With priorities, the classes of service are ordered, cores with high priority get
    the turbo, and cores without a priority get the low one, if a class has it. With
    numbers of classes of service, cores are assigned to these and nothing else is
    changed.

    A core whose threads are in several classes has the lowest class of service.

    Args:
        classes: Classes by name.
        members: Class to its CPUs, each of which is in one class at most.
        facts: What the machine has, with the original state of punits.

    Source:
        nri-plugins, Priority Core Turbo; Linux,
        Documentation/admin-guide/pm/intel-speed-select.rst.
    """
    able = [p for p in facts.punits if p.power is not Feature.UNSUPPORTED]
    used = in_use(classes, members)
    if priorities := _priorities(classes):
        return tuple(_managed(punit, priorities, used, facts) for punit in able)
    if any(one.sst_clos is not None for one in classes.values()):
        return tuple(_associated(punit, used, facts) for punit in able)
    return ()


def punit_words(punit: Punit, facts: CpuKnobFacts) -> Words:
    """Return the frequencies of a punit."""
    policies = [policy for policy in facts.policies if policy.cpus & punit.cpus]
    lows = [policy.min for policy in policies if policy.min]
    bases = [policy.base for policy in policies if policy.base]
    highs = [policy.max for policy in policies if policy.max]
    return {
        FrequencyWord.MIN: min(lows, default=None),
        FrequencyWord.BASE: max(bases, default=None),
        FrequencyWord.TURBO: max(highs, default=None),
    }


def high_priority_classes(
    classes: Mapping[str, CpuClass], facts: CpuKnobFacts
) -> frozenset[str]:
    """Return the names of the classes whose cores get the most turbo.

    If other programs set up the classes of service, this is the one with the highest
    maximum, the first of equal ones.
    """
    if priorities := _priorities(classes):
        high = priorities.get(PctPriority.HIGH)
        return frozenset({high.name} if high else ())
    named = {
        one.name: one.sst_clos
        for one in classes.values()
        if one.sst_clos is not None and one.sst_clos < CLOSES
    }
    tables = [punit.clos for punit in facts.punits if punit.clos]
    if not named or not tables:
        return frozenset()
    best = max(set(named.values()), key=lambda number: _rank(tables[0], number))
    return frozenset(name for name, number in named.items() if number == best)


def capacity_of(
    name: str, classes: Mapping[str, CpuClass], facts: CpuKnobFacts, free: CpuSet
) -> int:
    """Return how many of *free* CPUs a class of Speed Select can use.

    A class with high priority: on each punit as many as reach the highest turbo
    together. Another class: all of them. A class without Speed Select: 0.

    Source:
        nri-plugins, capacity of published CPU classes.
    """
    one = classes[name]
    if one.pct_priority is None and one.sst_clos is None:
        return 0
    if name not in high_priority_classes(classes, facts):
        return len(free)
    is_managed = one.pct_priority is not None
    return sum(
        min(_guaranteed(punit), len(punit.cpus & free))
        for punit in facts.punits
        if is_managed or punit.turbo is Feature.ON
    )


def _priorities(classes: Mapping[str, CpuClass]) -> dict[PctPriority, CpuClass]:
    return {c.pct_priority: c for c in classes.values() if c.pct_priority is not None}


def _managed(
    punit: Punit,
    priorities: Mapping[PctPriority, CpuClass],
    used: InUse,
    facts: CpuKnobFacts,
) -> Punit:
    others = PctPriority.LOW if PctPriority.LOW in priorities else PctPriority.HIGH
    numbers = {
        cpu: CLOS_OF[one.pct_priority or others]
        for one, cpus in used
        for cpu in cpus & punit.cpus
    }
    members = _members(punit, facts, lambda cpu: numbers.get(cpu, CLOS_OF[others]))
    words = punit_words(punit, facts)
    clos = [
        msgspec.structs.replace(old, cpus=cpus)
        for old, cpus in zip(punit.clos, members, strict=True)
    ]
    for priority, one in priorities.items():
        number = CLOS_OF[priority]
        clos[number] = _limited(one, words, members[number])
    return msgspec.structs.replace(
        punit,
        clos=tuple(clos),
        power=Feature.ON,
        order=ClosOrder.ORDERED,
        turbo=Feature.UNSUPPORTED if punit.turbo is Feature.UNSUPPORTED else Feature.ON,
    )


def _associated(punit: Punit, used: InUse, facts: CpuKnobFacts) -> Punit:
    numbers = {
        cpu: one.sst_clos
        for one, cpus in used
        if one.sst_clos is not None and one.sst_clos < CLOSES
        for cpu in cpus & punit.cpus
    }
    members = _members(punit, facts, numbers.get)
    pairs = zip(punit.clos, members, strict=True)
    return msgspec.structs.replace(
        punit,
        clos=tuple(msgspec.structs.replace(old, cpus=cpus) for old, cpus in pairs),
    )


def _members(
    punit: Punit, facts: CpuKnobFacts, number_of: Callable[[int], int | None]
) -> list[CpuSet]:
    """Return the CPUs of each class of service, by whole cores.

    Args:
        punit: The punit.
        facts: Has the CPUs of each core.
        number_of: Returns the class of service of a CPU; None for the present one.
    """
    found = [clos.cpus for clos in punit.clos]
    for core in _cores(punit, facts):
        numbers = [n for cpu in core if (n := number_of(cpu)) is not None]
        if numbers:
            found = [cpus - core for cpus in found]
            found[min(numbers)] |= core
    return found


def _cores(punit: Punit, facts: CpuKnobFacts) -> Iterator[CpuSet]:
    return (core & punit.cpus for core in facts.cores if core & punit.cpus)


def _limited(one: CpuClass, words: Words, cpus: CpuSet) -> Clos:
    low, high = (
        resolved(wanted, words, None, None)
        for wanted in (one.pct_min or one.min, one.pct_max or one.max)
    )
    if low is not None and high is not None:
        low = min(low, high)
    return Clos(0, _ratio(low), _ratio(high), cpus)


def _ratio(frequency: KiloHertz | None) -> KiloHertz | None:
    """Round a frequency down to steps of 100 MHz; None if it exceeds a byte of them."""
    if frequency is None:
        return None
    ratio = frequency // 100_000
    return KiloHertz(ratio * 100_000) if 0 < ratio < _NO_LIMIT else None


def _rank(table: tuple[Clos, ...], number: int) -> tuple[float, int]:
    limit = table[number].max
    return (float("inf") if limit is None else limit), -number


def _guaranteed(punit: Punit) -> int:
    """Return how many cores of a punit reach its highest turbo together."""
    if punit.turbo is not Feature.UNSUPPORTED and punit.buckets:
        return punit.buckets[0].cores
    return len(punit.base_cpus)
