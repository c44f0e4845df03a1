"""Reads the punits of Speed Select, by TPMI, or by mailbox and registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nri_resmgr.host.speed_select import isst
from nri_resmgr.host.speed_select.areas import Area, find_areas
from nri_resmgr.host.speed_select.isst import IsstDevice, SpeedSelectUnsupported
from nri_resmgr.topology import Core
from nri_resmgr.topology.speed_select import (
    Clos,
    ClosOrder,
    Feature,
    Punit,
    TurboBucket,
)
from nri_resmgr.values import NO_CPUS, CpuSet, KiloHertz

# Without TPMI, older versions of performance profiles lack required facts.
_FIRST_PROFILES: Final = 3

_CLASSES: Final = 4

# Commands and sub-commands of the mailbox, and registers (intel-speed-select,
# isst.h).
_TURBO_CORES: Final = (0x7F, 0x10)
_TURBO_RATIOS: Final = (0x7F, 0x11)
_BASE_MASK: Final = (0x7F, 0x20)
_PM_CONFIG: Final = (0x94, 0x03)


def read_punits(device: IsstDevice, cores: Sequence[Core]) -> Iterator[Punit]:
    """Read every punit that has any of *cores*, by package and number.

    It takes about ten ioctls for each, and one for 64 cores.

    Raises:
        SpeedSelectUnsupported: The driver or the hardware is of an unknown kind, or
            replies with an invalid value.
        OSError: The driver refused.

    Source:
        Linux, include/uapi/linux/isst_if.h; tools/power/x86/intel-speed-select,
        isst-core-tpmi.c and isst-core-mbox.c.
    """
    is_tpmi, areas = find_areas(device, cores)
    for area in areas:
        yield _tpmi(device, area) if is_tpmi else _mailbox(device, area)


def _tpmi(device: IsstDevice, area: Area) -> Punit:
    where = (area.package, area.id)
    # First, as the driver checks the domain in this request; some of the others rely on
    # the caller for that.
    levels = isst.ask(device, isst.PERF_LEVELS, isst.PERF_LEVEL, *where)
    _, _, _, _, mask, level, state, locked, has_profiles, turbo, base = levels
    power = isst.ask(device, isst.CORE_POWER_STATE, isst.CORE_POWER, 0, *where)
    _, _, _, power_on, has_power, order = power
    return Punit(
        package=area.package,
        id=area.id,
        cpus=area.cpus,
        level=level,
        levels=_bits(mask) if has_profiles else (level,),
        is_locked=bool(locked & 1),  # the driver leaves reserved bits above it
        base=_feature(base, state & 1),
        base_cpus=_tpmi_base(device, area, level) if base else NO_CPUS,
        turbo=_feature(turbo, state & 2),
        buckets=_tpmi_buckets(device, area, level) if turbo else (),
        power=_feature(has_power, power_on),
        order=_order(order),
        clos=_tpmi_clos(device, area) if has_power else (),
    )


def _tpmi_base(device: IsstDevice, area: Area, level: int) -> CpuSet:
    head = (area.package, area.id, level, 1)  # 1: a mask of cores, not a text
    _, _, _, _, mask, _ = isst.ask(
        device, isst.GET_BASE_FREQ_CPU_MASK, isst.CPU_MASK, *head
    )
    return area.masked(mask)


def _tpmi_buckets(
    device: IsstDevice, area: Area, level: int
) -> tuple[TurboBucket, ...]:
    fields = isst.ask(
        device,
        isst.GET_TURBO_FREQ_INFO,
        isst.TURBO_FREQ,
        *(area.package, area.id, level),
    )
    # Six fields and six limits of the other cores, then for each bucket its number of
    # cores and, as the first of six rows, the frequency without vector instructions.
    counts, speeds = fields[12:20], fields[20:28]
    return _buckets(counts, (speed * 1000 for speed in speeds))


def _tpmi_clos(device: IsstDevice, area: Area) -> tuple[Clos, ...]:
    where = (area.package, area.id)
    members = _members(area, isst.associations(device, *where, tuple(area.cores)))
    found = []
    for number, cpus in enumerate(members):
        fields = isst.ask(device, isst.CLOS_PARAM, isst.CLOS, 0, *where, number)
        _, _, _, _, low, high, weight = fields
        found.append(_clos(weight, low * 1000, high * 1000, cpus))
    return tuple(found)


def _mailbox(device: IsstDevice, area: Area) -> Punit:
    cpu = area.cpus.first
    info = isst.mailbox(device, cpu, isst.LEVELS_INFO)
    if info & 0xFF < _FIRST_PROFILES:
        raise SpeedSelectUnsupported(
            f"performance profiles of version {info & 0xFF}, {_FIRST_PROFILES} needed"
        )
    level, last = info >> 16 & 0xFF, info >> 8 & 0xFF
    state = isst.mailbox(device, cpu, isst.GET_CONTROL, level)
    turbo, base = state & 1, state >> 1 & 1
    power = isst.mailbox(device, cpu, _PM_CONFIG)
    order = isst.mailbox(device, cpu, isst.QOS_CONFIG) >> 2 & 1 if power & 1 else 0
    return Punit(
        package=area.package,
        id=area.id,
        cpus=area.cpus,
        level=level,
        levels=tuple(range(last + 1)) if info >> 31 & 1 else (level,),
        is_locked=bool(info >> 24 & 1),
        base=_feature(base, state >> 17 & 1),
        base_cpus=_mailbox_base(device, area, level) if base else NO_CPUS,
        turbo=_feature(turbo, state >> 16 & 1),
        buckets=_mailbox_buckets(device, cpu, level) if turbo else (),
        power=_feature(power & 1, power >> 16 & 1),
        order=_order(order),
        clos=_mailbox_clos(device, area) if power & 1 else (),
    )


def _mailbox_base(device: IsstDevice, area: Area, level: int) -> CpuSet:
    words = range(max(area.cores) // 32 + 1)
    return area.masked(
        sum(
            isst.mailbox(device, area.cpus.first, _BASE_MASK, word << 8 | level)
            << 32 * word
            for word in words
        )
    )


def _mailbox_buckets(
    device: IsstDevice, cpu: int, level: int
) -> tuple[TurboBucket, ...]:
    def octets(command: tuple[int, int]) -> list[int]:
        words = (isst.mailbox(device, cpu, command, n << 8 | level) for n in (0, 1))
        return [octet for word in words for octet in word.to_bytes(4, "little")]

    ratios = octets(_TURBO_RATIOS)
    return _buckets(octets(_TURBO_CORES), (ratio * isst.RATIO for ratio in ratios))


def _mailbox_clos(device: IsstDevice, area: Area) -> tuple[Clos, ...]:
    offsets = [
        *(isst.CLOS_REGISTER + 4 * number for number in range(_CLASSES)),
        *(isst.ASSOC_REGISTER + 4 * core for core in area.cores),
    ]
    values = isst.registers(device, area.cpus.first, offsets)
    members = _members(area, [value >> 16 & 3 for value in values[_CLASSES:]])
    return tuple(
        _clos(
            value >> 4 & 0xF,
            (value >> 8 & 0xFF) * isst.RATIO,
            (value >> 16 & 0xFF) * isst.RATIO,
            cpus,
        )
        for value, cpus in zip(values[:_CLASSES], members, strict=True)
    )


def _members(area: Area, classes: Sequence[int]) -> list[CpuSet]:
    """Return the CPUs of each class, given the class of each core in turn."""
    if max(classes) >= _CLASSES:
        raise SpeedSelectUnsupported(f"unknown class of service {max(classes)}")
    pairs = tuple(zip(area.cores.values(), classes, strict=True))
    return [
        CpuSet.union(cpus for cpus, clos in pairs if clos == number)
        for number in range(_CLASSES)
    ]


def _clos(weight: int, low: int, high: int, cpus: CpuSet) -> Clos:
    limit = KiloHertz(high) if high < isst.NO_LIMIT * isst.RATIO else None
    return Clos(weight, KiloHertz(low) if low else None, limit, cpus)


def _buckets(counts: Iterable[int], speeds: Iterable[int]) -> tuple[TurboBucket, ...]:
    rows = sorted(zip(counts, speeds, strict=True))
    return tuple(TurboBucket(n, KiloHertz(speed)) for n, speed in rows if n)


def _feature(supported: int, enabled: int) -> Feature:
    if not supported:
        return Feature.UNSUPPORTED
    return Feature.ON if enabled else Feature.OFF


def _order(number: int) -> ClosOrder:
    return ClosOrder.ORDERED if number else ClosOrder.PROPORTIONAL


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
