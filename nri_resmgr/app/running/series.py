"""Writes pins to cgroups, in the thread of `nri_resmgr.app.running.by_cgroup`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.cpuset_watch import CpusetWatch
from nri_resmgr.host.cgroups.writer import (
    CgroupWriter,
    CpusetValues,
    WriteOutcome,
    WriteResult,
)
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import NO_CPUS, CpuSet, HostError


class Enforcement(enum.Enum):
    """The means that keeps a container off CPUs that it should not have."""

    CPUSET = enum.auto()
    """Its own cpuset."""

    PARTITION = enum.auto()
    """Partitions of other containers; its cpuset has more CPUs than were decided."""

    NOTHING_YET = enum.auto()
    """Partitions will do, once their containers are started."""


class PinWrite(msgspec.Struct, frozen=True):
    """A pin to write.

    Attributes:
        pin: What the container should have.
        change: The part of it to write, or to compare with: reading a file takes a
            third of the time of writing one.
        known_cpus: Its CPUs until then, which are not read; empty if they are unknown.
        has_started: Whether the container was started before.
        is_check: Whether it was written before, and is only compared.
        is_unexpected: Whether nothing known has written it since.
        kept_off: CPUs of other containers' partitions.
        expected: CPUs of partitions that the start of other containers will make.
    """

    cgroup: CgroupReference
    pin: Pin
    change: Pin
    has_started: bool
    known_cpus: CpuSet = NO_CPUS
    is_check: bool = False
    is_unexpected: bool = False
    kept_off: CpuSet = NO_CPUS
    expected: CpuSet = NO_CPUS


class WrittenPin(msgspec.Struct, frozen=True):
    """The result of writing a pin, and what enforces it now."""

    result: WriteResult
    by: Enforcement = Enforcement.CPUSET


def write_pins(
    writer: CgroupWriter,
    watch: CpusetWatch | None,
    series: Iterable[PinWrite],
    begin_one: Callable[[], None],
) -> list[WrittenPin]:
    """Write pins one after the other; return a result for each.

    Args:
        writer: Used by this thread only.
        watch: Watches their files from then on; None where that cannot be.
        series: In the order of the writes.
        begin_one: Called before each write: a series may be long, one write may hang.
    """
    results = []
    for one in series:
        begin_one()
        # First: a write of another program must not come in between.
        if watch is not None and one.has_started and one.cgroup.id not in watch:
            _watch(writer, watch, one.cgroup)
        results.append(_write(writer, one))
    return results


def _watch(writer: CgroupWriter, watch: CpusetWatch, cgroup: CgroupReference) -> None:
    with suppress(HostError):  # the write reports it
        if files := writer.cpuset_files(cgroup):
            watch.add(cgroup.id, files)


def _write(writer: CgroupWriter, one: PinWrite) -> WrittenPin:
    by = _enforcement(writer, one)
    if by is Enforcement.NOTHING_YET:
        return WrittenPin(WriteResult(WriteOutcome.UNCHANGED), by)
    change = one.change
    cpus = change.cpus if by is Enforcement.CPUSET else NO_CPUS  # stays as it is
    values = CpusetValues(cpus, change.mems, change.shares)
    return WrittenPin(writer.write(one.cgroup, values, one.known_cpus), by)


def _enforcement(writer: CgroupWriter, one: PinWrite) -> Enforcement:
    if not one.change.cpus or not (one.kept_off or one.expected):
        return Enforcement.CPUSET
    try:
        present = writer.read(one.cgroup)
    except HostError:
        return Enforcement.CPUSET  # the write reports it
    if present is None or not present.cpus or present.cpus == one.pin.cpus:
        return Enforcement.CPUSET
    left = present.cpus - one.kept_off
    if left == one.pin.cpus:
        return Enforcement.PARTITION
    if left - one.expected == one.pin.cpus:
        return Enforcement.NOTHING_YET
    return Enforcement.CPUSET
