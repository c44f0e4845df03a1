"""CPUs of high and of low priority on a machine."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.topology import CoreKind, Cpu, Machine
from nri_resmgr.topology.speed_select import ClosOrder, Feature, Punit
from nri_resmgr.values import NO_CPUS, CpuSet

# The words as the hardware's numbers, 0 (fastest) to 255 (Linux,
# drivers/cpufreq/intel_pstate.c, epp_values); "default" is the firmware's
# choice, and that is balance_performance on every machine seen so far.
_EPP: Final = {
    "performance": 0,
    "balance_performance": 128,
    "default": 128,
    "balance_power": 192,
    "power": 255,
}
_SLOWEST_EPP: Final = 255

# Turbo frequency favours these classes of service; the hardware fixes it.
_TURBO_CLASSES: Final = 2


class CpuPriority(enum.StrEnum):
    """The class of CPUs that a request prefers; `ANY` ignores classes."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    ANY = "none"


class PrioritySets(msgspec.Struct, frozen=True):
    """CPUs of high and of low priority; every other CPU is normal.

    Callers with better data than the machine's build their own sets.
    """

    high: CpuSet = NO_CPUS
    low: CpuSet = NO_CPUS

    def __post_init__(self) -> None:
        if self.high & self.low:
            raise ValueError(
                f"CPU {self.high & self.low} is of high and of low priority"
            )


def machine_priorities(machine: Machine) -> PrioritySets:
    """Find better and worse CPUs by what the hardware and its drivers report.

    In a package where a feature of Speed Select is on, the first one that is on
    decides, punit by punit:

    * turbo frequency: classes of service 0 and 1 are high, the others low;
    * core power: the best class with CPUs is high, the worst low, by number or
      by weight as the punit ranks them;
    * base frequency: the faster cores are high.

    In any other package the last rule that finds a difference wins:

    * the highest maximum frequency is high (favoured cores);
    * the lowest base frequency is low, the others high;
    * the least eager energy performance preference is low, the others high.

    Efficient cores are low in any case and take no part in the comparisons of
    frequencies.

    Source:
        Linux, Documentation/admin-guide/pm/intel-speed-select.rst,
        intel_pstate.rst and cpufreq.rst.
    """
    weak = machine.online - machine.cpus_of_kind(CoreKind.PERFORMANCE)
    high, low = NO_CPUS, weak
    for package in machine.packages:
        punits = [p for p in machine.speed_select if p.package == package.id]
        found = [_by_speed_select(punit) for punit in punits]
        active = [sets for sets in found if sets is not None]
        if not active:
            active = [_compare([machine.cpu(number) for number in package.cpus - weak])]
        high |= CpuSet.union(better for better, _ in active)
        low |= CpuSet.union(worse for _, worse in active)
    return PrioritySets(high - weak, low)


def _by_speed_select(punit: Punit) -> tuple[CpuSet, CpuSet] | None:
    """Return the better and the worse CPUs; None where no feature is on."""
    if punit.turbo is Feature.ON and punit.clos:
        better = CpuSet.union(clos.cpus for clos in punit.clos[:_TURBO_CLASSES])
        return better, punit.cpus - better
    if punit.power is Feature.ON:
        return _ends(_ranked(punit))
    if punit.base is Feature.ON:
        return punit.base_cpus, NO_CPUS
    return None


def _ranked(punit: Punit) -> list[CpuSet]:
    """Return the classes that have CPUs, best first; equal ones count as one."""
    ranks: dict[int, CpuSet] = {}
    for number, clos in enumerate(punit.clos):
        rank = number if punit.order is ClosOrder.ORDERED else clos.weight
        ranks[rank] = ranks.get(rank, NO_CPUS) | clos.cpus
    return [ranks[rank] for rank in sorted(ranks) if ranks[rank]]


def _ends(ranked: Sequence[CpuSet]) -> tuple[CpuSet, CpuSet]:
    """Return the first and the last of the classes; nothing for fewer than two."""
    if len(ranked) > 1:
        return ranked[0], ranked[-1]
    return NO_CPUS, NO_CPUS


def _compare(cpus: Sequence[Cpu]) -> tuple[CpuSet, CpuSet]:
    """Return the better and the worse of CPUs of one package and kind."""
    found = (NO_CPUS, NO_CPUS)
    if differ := _differing({cpu.id: cpu.max for cpu in cpus}):
        found = (_where(differ, max(differ.values())), NO_CPUS)
    for values in (
        {cpu.id: cpu.base for cpu in cpus},
        {cpu.id: _eagerness(cpu) for cpu in cpus},
    ):
        if differ := _differing(values):
            worse = _where(differ, min(differ.values()))
            found = (CpuSet.from_iterable(differ) - worse, worse)
    return found


def _differing(values: Mapping[int, int | None]) -> dict[int, int]:
    """Return the known values by CPU; none if all are equal."""
    known = {cpu: value for cpu, value in values.items() if value}
    return known if len(set(known.values())) > 1 else {}


def _where(values: Mapping[int, int], wanted: int) -> CpuSet:
    return CpuSet.from_iterable(cpu for cpu, value in values.items() if value == wanted)


def _eagerness(cpu: Cpu) -> int | None:
    """Return the energy performance preference inverted: larger means faster."""
    if cpu.epp.isdecimal():
        return _SLOWEST_EPP + 1 - int(cpu.epp)
    return _SLOWEST_EPP + 1 - _EPP[cpu.epp] if cpu.epp in _EPP else None
