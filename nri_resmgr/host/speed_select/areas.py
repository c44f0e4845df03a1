"""Finds which cores belong to which punit of Speed Select."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.host.speed_select import isst
from nri_resmgr.host.speed_select.isst import IsstDevice, SpeedSelectUnsupported
from nri_resmgr.topology import Core
from nri_resmgr.values import NO_CPUS, CpuSet

# First version of the driver's API with power domains and structures (TPMI).
_TPMI_API: Final = 2


class Area(msgspec.Struct, frozen=True):
    """One punit, and the CPUs of each core by the punit's own numbers."""

    package: int
    id: int
    cores: Mapping[int, CpuSet]

    @property
    def cpus(self) -> CpuSet:
        """CPUs of all cores."""
        return CpuSet.union(self.cores.values())

    def masked(self, mask: int) -> CpuSet:
        """Return the CPUs of the cores whose bits are set."""
        return CpuSet.union(cpus for n, cpus in self.cores.items() if mask >> n & 1)


def find_areas(
    device: IsstDevice, cores: Sequence[Core]
) -> tuple[bool, tuple[Area, ...]]:
    """Find the punits that have any of *cores*, by package and number.

    Returns:
        Whether the driver has TPMI, else mailbox and registers; and the punits.

    Raises:
        SpeedSelectUnsupported: The driver is of an unknown kind, or has no number for
            a core.
        OSError: The driver refused.
    """
    info = isst.ask(device, isst.GET_PLATFORM_INFO, isst.PLATFORM_INFO)
    api, _, _, has_mailbox, has_registers = info
    numbers = isst.punit_cpus(device, [core.cpus.first for core in cores])
    is_tpmi = api >= _TPMI_API
    if not is_tpmi and not (has_mailbox and has_registers):
        raise SpeedSelectUnsupported("the driver lacks the mailbox or the registers")
    locate = _by_domain if is_tpmi else _by_die
    return is_tpmi, tuple(_areas(cores, numbers, locate))


def _by_domain(core: Core, number: int) -> tuple[int, int, int]:
    """Return package, punit and core by MSR_PM_LOGICAL_ID (0x54)."""
    return core.package, number >> 11 & 0x1F, number >> 3 & 0xFF


def _by_die(core: Core, number: int) -> tuple[int, int, int]:
    """Return package, punit and core by MSR_THREAD_ID_INFO (0x53)."""
    return core.package, core.die, number >> 1 & 0xFF


def _areas(
    cores: Sequence[Core],
    numbers: Sequence[int],
    locate: Callable[[Core, int], tuple[int, int, int]],
) -> Iterator[Area]:
    found: dict[tuple[int, int], dict[int, CpuSet]] = {}
    for core, number in zip(cores, numbers, strict=True):
        package, punit, inner = locate(core, number)
        area = found.setdefault((package, punit), {})
        area[inner] = area.get(inner, NO_CPUS) | core.cpus
    for (package, punit), area in sorted(found.items()):
        yield Area(package, punit, dict(sorted(area.items())))
