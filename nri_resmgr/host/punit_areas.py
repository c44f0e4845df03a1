"""Which cores are in which punit of Speed Select, by the punit's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.host import isst
from nri_resmgr.host.isst import IsstDevice, SpeedSelectUnsupported
from nri_resmgr.topology import Core
from nri_resmgr.values import NO_CPUS, CpuSet

# From here on the driver speaks of power domains and structures (TPMI).
_TPMI_API: Final = 2


class Area(msgspec.Struct, frozen=True):
    """One punit and its CPUs by its own numbers of cores, ascending."""

    package: int
    id: int
    cores: Mapping[int, CpuSet]

    @property
    def cpus(self) -> CpuSet:
        """All of its CPUs."""
        return CpuSet.union(self.cores.values())

    def masked(self, mask: int) -> CpuSet:
        """Return the CPUs of the cores whose bits are set."""
        return CpuSet.union(cpus for n, cpus in self.cores.items() if mask >> n & 1)


def find_areas(
    device: IsstDevice, cores: Sequence[Core]
) -> tuple[bool, tuple[Area, ...]]:
    """Find the punits that have any of *cores*, by package and number.

    Returns:
        Whether the driver speaks TPMI, else mailbox and registers; and the punits.

    Raises:
        SpeedSelectUnsupported: The driver is not of a kind that we know, or knows no
            number of a core.
        OSError: The driver refused.
    """
    info = isst.ask(device, isst.GET_PLATFORM_INFO, isst.PLATFORM_INFO)
    api, _, _, has_mailbox, has_registers = info
    numbers = isst.punit_cpus(device, [core.cpus.first for core in cores])
    is_tpmi = api >= _TPMI_API
    if not is_tpmi and not (has_mailbox and has_registers):
        raise SpeedSelectUnsupported("the driver lacks the mailbox or the registers")
    place = _by_domain if is_tpmi else _by_die
    return is_tpmi, tuple(_areas(cores, numbers, place))


def _by_domain(core: Core, number: int) -> tuple[int, int, int]:
    """Package, punit and core of MSR_PM_LOGICAL_ID (0x54)."""
    return core.package, number >> 11 & 0x1F, number >> 3 & 0xFF


def _by_die(core: Core, number: int) -> tuple[int, int, int]:
    """Package, punit and core of MSR_THREAD_ID_INFO (0x53)."""
    return core.package, core.die, number >> 1 & 0xFF


def _areas(
    cores: Sequence[Core],
    numbers: Sequence[int],
    place: Callable[[Core, int], tuple[int, int, int]],
) -> Iterator[Area]:
    found: dict[tuple[int, int], dict[int, CpuSet]] = {}
    for core, number in zip(cores, numbers, strict=True):
        package, punit, inner = place(core, number)
        area = found.setdefault((package, punit), {})
        area[inner] = area.get(inner, NO_CPUS) | core.cpus
    for (package, punit), area in sorted(found.items()):
        yield Area(package, punit, dict(sorted(area.items())))
