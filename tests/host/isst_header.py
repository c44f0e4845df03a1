"""Recorded bytes of a Speed Select driver, out of the kernel's own structures.

The structures are those of include/uapi/linux/isst_if.h, laid out by ctypes as the
C compiler does it; nothing is shared with the code that reads them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import c_int8, c_uint8, c_uint16, c_uint32, c_uint64

from nri_resmgr.topology import Core, Machine
from nri_resmgr.topology.speed_select import ClosOrder, Feature, Punit
from nri_resmgr.values import CpuSet

Replies = dict[tuple[int, bytes], tuple[int, bytes]]


def ioc(direction: str, number: int) -> int:
    """Do what _IOR, _IOW and _IOWR do; every argument is a pointer."""
    return {"w": 1, "r": 2, "rw": 3}[direction] << 30 | 8 << 16 | 0xFE << 8 | number


class PlatformInfo(ctypes.Structure):
    """A struct isst_if_platform_info."""

    _fields_ = (
        *((name, c_uint16) for name in ("api_version", "driver_version", "max_cmds")),
        *((name, c_uint8) for name in ("mbox_supported", "mmio_supported")),
    )


class CpuMap(ctypes.Structure):
    """A struct isst_if_cpu_map."""

    _fields_ = (("logical_cpu", c_uint32), ("physical_cpu", c_uint32))


class IoReg(ctypes.Structure):
    """A struct isst_if_io_reg."""

    _fields_ = tuple(
        (name, c_uint32) for name in ("read_write", "logical_cpu", "reg", "value")
    )


class MboxCmd(ctypes.Structure):
    """A struct isst_if_mbox_cmd."""

    _fields_ = (
        *((n, c_uint32) for n in ("logical_cpu", "parameter", "req_data", "resp_data")),
        ("command", c_uint16),
        ("sub_command", c_uint16),
        ("reserved", c_uint32),
    )


class CorePower(ctypes.Structure):
    """A struct isst_core_power."""

    _fields_ = tuple(
        (name, c_uint8)
        for name in (
            *("get_set", "socket_id", "power_domain_id"),
            *("enable", "supported", "priority_type"),
        )
    )


class ClosParam(ctypes.Structure):
    """A struct isst_clos_param."""

    _fields_ = (
        *((n, c_uint8) for n in ("get_set", "socket_id", "power_domain_id", "clos")),
        ("min_freq_mhz", c_uint16),
        ("max_freq_mhz", c_uint16),
        ("prop_prio", c_uint8),
    )


class ClosAssoc(ctypes.Structure):
    """A struct isst_if_clos_assoc."""

    _fields_ = (
        ("socket_id", c_uint8),
        ("power_domain_id", c_uint8),
        ("logical_cpu", c_uint16),
        ("clos", c_uint16),
    )


class ClosAssocHead(ctypes.Structure):
    """A struct isst_if_clos_assoc_cmds, its array of one left out."""

    _fields_ = tuple(
        (name, c_uint16) for name in ("cmd_count", "get_set", "punit_cpu_map")
    )


class PerfLevelInfo(ctypes.Structure):
    """A struct isst_perf_level_info."""

    _fields_ = tuple(
        (name, c_uint8)
        for name in (
            *("socket_id", "power_domain_id", "max_level", "feature_rev"),
            *("level_mask", "current_level", "feature_state", "locked", "enabled"),
            *("sst_tf_support", "sst_bf_support"),
        )
    )


class CpuMask(ctypes.Structure):
    """A struct isst_perf_level_cpu_mask."""

    _fields_ = (
        ("socket_id", c_uint8),
        ("power_domain_id", c_uint8),
        ("level", c_uint8),
        ("punit_cpu_map", c_uint8),
        ("mask", c_uint64),
        ("cpu_buffer_size", c_uint16),
        ("cpu_buffer", c_int8 * 1),
    )


class TurboFreqInfo(ctypes.Structure):
    """A struct isst_turbo_freq_info."""

    _fields_ = (
        ("socket_id", c_uint8),
        ("power_domain_id", c_uint8),
        *(
            (name, c_uint16)
            for name in ("level", "max_clip_freqs", "max_buckets", "max_trl_levels")
        ),
        ("lp_clip_freq_mhz", c_uint16 * 6),
        ("bucket_core_counts", c_uint16 * 8),
        ("trl_freq_mhz", (c_uint16 * 8) * 6),
    )


def commands(
    count: ctypes.Structure | c_uint32, items: Iterable[ctypes.Structure]
) -> bytes:
    return bytes(count) + b"".join(bytes(item) for item in items)


def cores_of(machine: Machine, punit: Punit) -> list[Core]:
    return [core for core in machine.cores if core.cpus <= punit.cpus]


def mask(cores: Iterable[Core], cpus: CpuSet) -> int:
    """Set the bit of every core whose CPUs are among *cpus*; cores count from 0."""
    return sum(1 << n for n, core in enumerate(cores) if core.cpus <= cpus)


def class_of(punit: Punit, core: Core) -> int:
    return next(n for n, clos in enumerate(punit.clos) if core.cpus <= clos.cpus)


def platform(api: int, *, mbox: int = 1, mmio: int = 1) -> Replies:
    answer = PlatformInfo(api, 1, 64, mbox, mmio)
    return {(ioc("r", 0), bytes(8)): (0, bytes(answer))}


def numbers(machine: Machine, number_of: dict[int, int]) -> Replies:
    """Answer which number each core's first CPU has in its punit, 64 at a time."""
    firsts = [core.cpus.first for core in machine.cores]
    replies: Replies = {}
    for start in range(0, len(firsts), 64):
        part = firsts[start : start + 64]
        count = c_uint32(len(part))
        asked = commands(count, (CpuMap(cpu, 0) for cpu in part))
        answer = commands(count, (CpuMap(cpu, number_of[cpu]) for cpu in part))
        replies[ioc("rw", 1), asked] = (len(part), answer)
    return replies


def tpmi(machine: Machine) -> Replies:
    """Answer as a driver of TPMI would, of a machine that has the facts."""
    number_of = {
        core.cpus.first: punit.id << 11 | n << 3
        for punit in machine.speed_select
        for n, core in enumerate(cores_of(machine, punit))
    }
    replies = platform(2) | numbers(machine, number_of)
    for punit in machine.speed_select:
        replies |= _profiles(punit) | _power(machine, punit)
        where = (punit.package, punit.id, punit.level)
        if punit.base is not Feature.UNSUPPORTED:
            fast = mask(cores_of(machine, punit), punit.base_cpus)
            replies[ioc("r", 15), bytes(CpuMask(*where, 1))] = (
                0,
                bytes(CpuMask(*where, 1, fast)),
            )
        if punit.turbo is not Feature.UNSUPPORTED:
            answer = TurboFreqInfo(*where, 6, 8, 6)
            for n, bucket in enumerate(punit.buckets):
                answer.bucket_core_counts[n] = bucket.cores
                answer.trl_freq_mhz[0][n] = bucket.max // 1000
                answer.trl_freq_mhz[1][n] = 1  # wide vectors are slower
            replies[ioc("r", 16), bytes(TurboFreqInfo(*where))] = (0, bytes(answer))
    return replies


def _profiles(punit: Punit) -> Replies:
    where = (punit.package, punit.id)
    answer = PerfLevelInfo(
        *where,
        level_mask=sum(1 << level for level in punit.levels),
        current_level=punit.level,
        feature_state=(punit.base is Feature.ON) | (punit.turbo is Feature.ON) << 1,
        locked=punit.is_locked,
        enabled=1,
        sst_tf_support=punit.turbo is not Feature.UNSUPPORTED,
        sst_bf_support=punit.base is not Feature.UNSUPPORTED,
    )
    return {(ioc("rw", 9), bytes(PerfLevelInfo(*where))): (0, bytes(answer))}


def _power(machine: Machine, punit: Punit) -> Replies:
    where = (0, punit.package, punit.id)
    supported = punit.power is not Feature.UNSUPPORTED
    answer = CorePower(
        *where,
        enable=punit.power is Feature.ON,
        supported=supported,
        priority_type=punit.order is ClosOrder.ORDERED,
    )
    replies = {(ioc("rw", 6), bytes(CorePower(*where))): (0, bytes(answer))}
    if not supported:
        return replies
    for n, clos in enumerate(punit.clos):
        high = 25500 if clos.max is None else clos.max // 1000
        param = ClosParam(*where, n, (clos.min or 0) // 1000, high, clos.weight)
        replies[ioc("rw", 7), bytes(ClosParam(*where, n))] = (0, bytes(param))
    cores = cores_of(machine, punit)
    head = ClosAssocHead(len(cores), 0, 1)
    asked = (ClosAssoc(*where[1:], n, 0) for n, _ in enumerate(cores))
    member = (
        ClosAssoc(*where[1:], n, class_of(punit, core)) for n, core in enumerate(cores)
    )
    replies[ioc("rw", 8), commands(head, asked)] = (0, commands(head, member))
    return replies
