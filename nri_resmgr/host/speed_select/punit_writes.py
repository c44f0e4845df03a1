"""Changes a punit of Speed Select, by TPMI, or by mailbox and registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from nri_resmgr.host.speed_select import isst
from nri_resmgr.host.speed_select.areas import Area, find_areas
from nri_resmgr.host.speed_select.isst import IsstDevice
from nri_resmgr.topology import Core
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit

# Commands, sub-commands and bits of the mailbox, and registers
# (intel-speed-select, isst.h).
_SET_CONTROL: Final = (0x7F, 0x02)
_WRITE_PM_CONFIG: Final = (0x95, 0x03)
_QOS_WRITE: Final = 1 << 8
_QOS_ON, _QOS_ORDERED = 1 << 1, 1 << 2
_TURBO_ON, _BASE_ON, _POWER_ON = 1 << 16, 1 << 17, 1 << 16
# Weight, minimum and maximum; all other bits must stay as they are.
_CLOS_BITS: Final = 0x00FF_FFF0


class PunitWriter(Protocol):
    """Writes to one punit by one kind of driver; any call may raise `OSError`."""

    def set_turbo(self, *, on: bool) -> None:
        """Switch turbo frequency (SST-TF)."""

    def set_power(self, order: ClosOrder, *, on: bool) -> None:
        """Switch core power (SST-CP), and set how classes of service are ranked."""

    def set_clos(self, number: int, clos: Clos) -> None:
        """Set weight and limits of a class of service."""

    def move(self, classes: Mapping[int, int]) -> None:
        """Put cores, by the punit's own numbers, into classes of service."""


def punit_writers(
    device: IsstDevice, cores: Sequence[Core]
) -> Mapping[tuple[int, int], tuple[PunitWriter, Area]]:
    """Return the writer and the cores of each punit, by package and number.

    Raises:
        SpeedSelectUnsupported: The driver is of an unknown kind.
        OSError: The driver refused.
    """
    is_tpmi, areas = find_areas(device, cores)
    kind = _Tpmi if is_tpmi else _Mailbox
    return {(area.package, area.id): (kind(device, area), area) for area in areas}


def write_punit(writer: PunitWriter, area: Area, old: Punit, new: Punit) -> None:
    """Change a punit from *old* to *new*, in the order that the hardware accepts.

    Turbo frequency needs core power: it is switched off before it, and on after it.
    Features that a punit does not support are skipped.

    Raises:
        SpeedSelectUnsupported: Only some of it was done.
        OSError: The driver refused; some of it may have been done.
    """
    is_switched = new.turbo is not old.turbo and Feature.UNSUPPORTED not in (
        new.turbo,
        old.turbo,
    )
    turns_on = new.turbo is Feature.ON
    if is_switched and not turns_on:
        writer.set_turbo(on=False)
    is_powered = new.power is Feature.ON
    is_power_new = (new.power, new.order) != (old.power, old.order)
    if is_power_new and not is_powered:
        writer.set_power(new.order, on=False)
    for number, (had, wanted) in enumerate(zip(old.clos, new.clos, strict=True)):
        if _limits(had) != _limits(wanted):
            writer.set_clos(number, wanted)
    if moved := _moved(area, old.clos, new.clos):
        writer.move(moved)
    if is_power_new and is_powered:
        writer.set_power(new.order, on=True)
    if is_switched and turns_on:
        writer.set_turbo(on=True)


class _Tpmi:
    def __init__(self, device: IsstDevice, area: Area) -> None:
        self._device = device
        self._where = (area.package, area.id)

    def set_turbo(self, *, on: bool) -> None:
        levels = isst.ask(self._device, isst.PERF_LEVELS, isst.PERF_LEVEL, *self._where)
        state = levels[6] & ~2 | on << 1  # bit 0: base frequency
        state_of = isst.PERF_FEATURE.pack(*self._where, state)
        self._device.call(isst.PERF_SET_FEATURE, state_of)

    def set_power(self, order: ClosOrder, *, on: bool) -> None:
        fields = (1, *self._where, on, 0, order is ClosOrder.ORDERED)
        self._device.call(isst.CORE_POWER_STATE, isst.CORE_POWER.pack(*fields))

    def set_clos(self, number: int, clos: Clos) -> None:
        low = (clos.min or 0) // 1000
        high = (isst.NO_LIMIT * isst.RATIO if clos.max is None else clos.max) // 1000
        fields = (1, *self._where, number, low, high, clos.weight)
        self._device.call(isst.CLOS_PARAM, isst.CLOS.pack(*fields))

    def move(self, classes: Mapping[int, int]) -> None:
        isst.associate(self._device, *self._where, classes)


class _Mailbox:
    def __init__(self, device: IsstDevice, area: Area) -> None:
        self._device = device
        self._cpu = area.cpus.first

    def set_turbo(self, *, on: bool) -> None:
        level = isst.mailbox(self._device, self._cpu, isst.LEVELS_INFO) >> 16 & 0xFF
        state = isst.mailbox(self._device, self._cpu, isst.GET_CONTROL, level)
        wanted = state & _BASE_ON | (_TURBO_ON if on else 0)
        isst.mailbox(self._device, self._cpu, _SET_CONTROL, wanted)

    def set_power(self, order: ClosOrder, *, on: bool) -> None:
        power = _POWER_ON if on else 0
        isst.mailbox(self._device, self._cpu, _WRITE_PM_CONFIG, power)
        found = isst.mailbox(self._device, self._cpu, isst.QOS_CONFIG)
        wanted = found & ~(_QOS_ON | _QOS_ORDERED)
        wanted |= (_QOS_ON if on else 0) | (
            _QOS_ORDERED if order is ClosOrder.ORDERED else 0
        )
        isst.mailbox(self._device, self._cpu, isst.QOS_CONFIG, wanted, _QOS_WRITE)

    def set_clos(self, number: int, clos: Clos) -> None:
        register = isst.CLOS_REGISTER + 4 * number
        (found,) = isst.registers(self._device, self._cpu, [register])
        high = isst.NO_LIMIT if clos.max is None else clos.max // isst.RATIO
        ours = clos.weight << 4 | (clos.min or 0) // isst.RATIO << 8 | high << 16
        isst.set_registers(
            self._device, self._cpu, {register: found & ~_CLOS_BITS | ours}
        )

    def move(self, classes: Mapping[int, int]) -> None:
        values = {
            isst.ASSOC_REGISTER + 4 * core: number << 16
            for core, number in classes.items()
        }
        isst.set_registers(self._device, self._cpu, values)


def _limits(clos: Clos) -> tuple[object, ...]:
    return clos.weight, clos.min, clos.max


def _moved(area: Area, old: Sequence[Clos], new: Sequence[Clos]) -> dict[int, int]:
    """Return the new class of each core that changes its class."""
    found = {}
    for core, cpus in area.cores.items():
        numbers = [n for n, clos in enumerate(new) if clos.cpus & cpus]
        if numbers and not cpus <= old[numbers[0]].cpus:
            found[core] = numbers[0]
    return found
