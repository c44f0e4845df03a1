"""Which CPUs of a machine are better and which are worse than the others."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from nri_resmgr.topology import CoreKind, Cpu, Machine
from nri_resmgr.values import NO_CPUS, CpuSet

# What the words stand for in the hardware's 0 (fastest) to 255 (Linux,
# drivers/cpufreq/intel_pstate.c, epp_values); "default" is the firmware's
# choice, and that is balance_performance on every machine seen so far.
_EPP: Final = {
    "performance": 0,
    "balance_performance": 128,
    "default": 128,
    "balance_power": 192,
    "power": 255,
}
_LAZIEST: Final = 255


class CpuPriority(enum.StrEnum):
    """The class of CPUs that a request prefers; `ANY` does not look at classes."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    ANY = "none"


@attrs.frozen
class PrioritySets:
    """CPUs better and worse than normal; every other CPU is normal.

    A caller that knows more than the model, such as Speed Select's classes of
    service, builds its own.
    """

    high: CpuSet = NO_CPUS
    low: CpuSet = NO_CPUS

    def __attrs_post_init__(self) -> None:
        if self.high & self.low:
            msg = f"CPU {self.high & self.low} is of high and of low priority"
            raise ValueError(msg)


def machine_priorities(machine: Machine) -> PrioritySets:
    """Tell better CPUs from worse ones by what the frequency driver says.

    Package by package, the last rule that finds a difference wins:

    * the highest maximum frequency is high (favoured cores);
    * the lowest base frequency is low, the others high;
    * the least eager energy performance preference is low, the others high.

    Efficient cores are low in any case and take no part in the comparisons.

    Source:
        Linux, Documentation/admin-guide/pm/intel_pstate.rst and cpufreq.rst.
    """
    low = machine.online - machine.cpus_of_kind(CoreKind.PERFORMANCE)
    high = NO_CPUS
    for package in machine.packages:
        strong = [machine.cpu(number) for number in package.cpus - low]
        better, worse = _compare(strong)
        high |= better
        low |= worse
    return PrioritySets(high, low)


def _compare(cpus: Sequence[Cpu]) -> tuple[CpuSet, CpuSet]:
    """Return the better and the worse of CPUs of one package and kind."""
    found = (NO_CPUS, NO_CPUS)
    if differ := _differing({cpu.id: cpu.max for cpu in cpus}):
        found = (_where(differ, max(differ.values())), NO_CPUS)
    for facts in (
        {cpu.id: cpu.base for cpu in cpus},
        {cpu.id: _eagerness(cpu) for cpu in cpus},
    ):
        if differ := _differing(facts):
            worse = _where(differ, min(differ.values()))
            found = (CpuSet.from_iterable(differ) - worse, worse)
    return found


def _differing(facts: Mapping[int, int | None]) -> dict[int, int]:
    """Leave out CPUs without the fact, and all when there is nothing to compare."""
    known = {cpu: fact for cpu, fact in facts.items() if fact}
    return known if len(set(known.values())) > 1 else {}


def _where(facts: Mapping[int, int], wanted: int) -> CpuSet:
    return CpuSet.from_iterable(cpu for cpu, fact in facts.items() if fact == wanted)


def _eagerness(cpu: Cpu) -> int | None:
    """Turn the preference round, so that more is better; 1 is the least."""
    if cpu.epp.isdecimal():
        return _LAZIEST + 1 - int(cpu.epp)
    return _LAZIEST + 1 - _EPP[cpu.epp] if cpu.epp in _EPP else None
