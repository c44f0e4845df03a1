"""Speed Select for CPU classes: classes of service, and the cores in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, PctPriority
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.classes.cpu.turbo import InUse, Words, in_use, resolved_range
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

    A core whose threads are in several classes has the lowest class of service. The
    facts have to have the original state of punits.

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

    *number_of* returns the class of service of a CPU; None for the present one.
    """
    found = [clos.cpus for clos in punit.clos]
    for core in filter(None, (core & punit.cpus for core in facts.cores)):
        numbers = [n for cpu in core if (n := number_of(cpu)) is not None]
        if numbers:
            found = [cpus - core for cpus in found]
            found[min(numbers)] |= core
    return found


def _limited(one: CpuClass, words: Words, cpus: CpuSet) -> Clos:
    wanted = (one.pct_min or one.min, one.pct_max or one.max)
    low, high = resolved_range(wanted, words, None, None)
    return Clos(0, _ratio(low), _ratio(high), cpus)


def _ratio(frequency: KiloHertz | None) -> KiloHertz | None:
    """Round a frequency down to steps of 100 MHz; None if it exceeds a byte of them."""
    if frequency is None:
        return None
    ratio = frequency // 100_000
    return KiloHertz(ratio * 100_000) if 0 < ratio < _NO_LIMIT else None
