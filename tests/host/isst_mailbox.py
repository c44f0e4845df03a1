"""Recorded bytes of a Speed Select driver that has a mailbox and registers."""

from __future__ import annotations

from ctypes import c_uint32

from nri_resmgr.topology import Machine
from nri_resmgr.topology.speed_select import ClosOrder, Feature, Punit
from tests.host.isst_header import (
    IoReg,
    MboxCmd,
    Replies,
    class_of,
    commands,
    cores_of,
    ioc,
    mask,
    numbers,
    platform,
)

ONE = c_uint32(1)
CONFIG_TDP, CONFIG_CLOS, READ_PM_CONFIG = 0x7F, 0xD0, 0x94


def letter(cpu: int, command: int, sub: int, data: int, answer: int) -> Replies:
    asked = MboxCmd(cpu, 0, data, 0, command, sub, 0)
    reported = MboxCmd(cpu, 0, data, answer, command, sub, 0)
    return {(ioc("rw", 3), commands(ONE, [asked])): (1, commands(ONE, [reported]))}


def mailbox(machine: Machine) -> Replies:
    """Answer as drivers before TPMI would, of a machine that has the facts."""
    number_of = {
        core.cpus.first: n << 1
        for punit in machine.speed_select
        for n, core in enumerate(cores_of(machine, punit))
    }
    replies = platform(1) | numbers(machine, number_of)
    for punit in machine.speed_select:
        replies |= _profiles(punit) | _features(machine, punit) | _power(punit)
        if punit.power is not Feature.UNSUPPORTED:
            replies |= _registers(machine, punit)
    return replies


def _profiles(punit: Punit) -> Replies:
    version, last = 3, max(punit.levels)
    several = len(punit.levels) > 1
    info = version | last << 8 | punit.level << 16 | punit.is_locked << 24
    control = (
        (punit.turbo is not Feature.UNSUPPORTED)
        | (punit.base is not Feature.UNSUPPORTED) << 1
        | (punit.turbo is Feature.ON) << 16
        | (punit.base is Feature.ON) << 17
    )
    cpu = punit.cpus.first
    return letter(cpu, CONFIG_TDP, 0, 0, info | several << 31) | letter(
        cpu, CONFIG_TDP, 1, punit.level, control
    )


def _features(machine: Machine, punit: Punit) -> Replies:
    cpu, level = punit.cpus.first, punit.level
    replies: Replies = {}
    if punit.base is not Feature.UNSUPPORTED:
        cores = cores_of(machine, punit)
        fast = mask(cores, punit.base_cpus)
        for n in range((len(cores) + 31) // 32):
            word = fast >> 32 * n & 0xFFFFFFFF
            replies |= letter(cpu, CONFIG_TDP, 0x20, n << 8 | level, word)
    if punit.turbo is not Feature.UNSUPPORTED:
        counts = bytes(b.cores for b in punit.buckets).ljust(8, b"\0")
        ratios = bytes(b.max // 100_000 for b in punit.buckets).ljust(8, b"\0")
        for n in (0, 1):
            for sub, octets in ((0x10, counts), (0x11, ratios)):
                word = int.from_bytes(octets[4 * n : 4 * n + 4], "little")
                replies |= letter(cpu, CONFIG_TDP, sub, n << 8 | level, word)
    return replies


def _power(punit: Punit) -> Replies:
    cpu = punit.cpus.first
    supported, enabled = (
        punit.power is not Feature.UNSUPPORTED,
        punit.power is Feature.ON,
    )
    config = letter(cpu, READ_PM_CONFIG, 3, 0, supported | enabled << 16)
    order = enabled << 1 | (punit.order is ClosOrder.ORDERED) << 2
    return config | letter(cpu, CONFIG_CLOS, 2, 0, order) if supported else config


def _registers(machine: Machine, punit: Punit) -> Replies:
    cpu = punit.cpus.first
    values: dict[int, int] = {}
    for n, clos in enumerate(punit.clos):
        high = 255 if clos.max is None else clos.max // 100_000
        low = (clos.min or 0) // 100_000
        values[0x08 + 4 * n] = 0x7F00000F | clos.weight << 4 | low << 8 | high << 16
    for n, core in enumerate(cores_of(machine, punit)):
        values[0x20 + 4 * n] = class_of(punit, core) << 16
    replies: Replies = {}
    pairs = list(values.items())
    for start in range(0, len(pairs), 64):
        part = pairs[start : start + 64]
        count = c_uint32(len(part))
        asked = commands(count, (IoReg(0, cpu, reg, 0) for reg, _ in part))
        reported = commands(count, (IoReg(0, cpu, reg, value) for reg, value in part))
        replies[ioc("w", 2), asked] = (len(part), reported)
    return replies
