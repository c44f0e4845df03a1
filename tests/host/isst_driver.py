"""A Speed Select driver that keeps what was written, as hardware does."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ctypes import Structure, c_uint8, c_uint32, sizeof
from typing import Any

import msgspec

from nri_resmgr.host.speed_select.isst import IsstDevice
from nri_resmgr.topology import Machine
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit
from nri_resmgr.values import CpuSet, KiloHertz
from tests.host.isst_header import (
    ClosAssoc,
    ClosAssocHead,
    ClosParam,
    CorePower,
    IoReg,
    MboxCmd,
    Replies,
    commands,
    cores_of,
    ioc,
    tpmi,
)
from tests.host.isst_mailbox import mailbox

ORDERS = (ClosOrder.PROPORTIONAL, ClosOrder.ORDERED)


class RecordedIsst(msgspec.Struct, frozen=True):
    """A device as recorded requests and replies; all other requests fail.

    Attributes:
        replies: Ioctl and its data to result and data.
    """

    replies: Mapping[tuple[int, bytes], tuple[int, bytes]]

    def call(self, request: int, data: bytes) -> tuple[int, bytes]:
        if (request, data) not in self.replies:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        return self.replies[request, data]


class FeatureControl(Structure):
    """A struct isst_perf_feature_control."""

    _fields_ = tuple(
        (name, c_uint8) for name in ("socket_id", "power_domain_id", "feature")
    )


class Killed(BaseException):
    """The process ended in the middle of its work."""


class IsstDriver:
    """The driver of a machine, with the facts of the machine for its state.

    It refuses what hardware does not take: turbo frequency without core power.

    Attributes:
        machine: As the writes left it.
        writes: How many there were.
        fails_at: The number of the write that ends the process; 0 for none.
        refuses: An errno for every write; 0 to take them.
    """

    def __init__(
        self, machine: Machine, replies: Callable[[Machine], Replies] = tpmi
    ) -> None:
        self.machine = machine
        self._replies = replies
        self._answers: tuple[Machine, Replies] | None = None
        self.writes = 0
        self.fails_at = 0
        self.refuses = 0

    @contextmanager
    def opened(self) -> Iterator[IsstDevice]:
        yield self

    def call(self, request: int, data: bytes) -> tuple[int, bytes]:
        """See `IsstDevice.call`."""
        handlers = {
            ioc("w", 2): self._registers,
            ioc("rw", 3): self._letters,
            ioc("rw", 6): self._power,
            ioc("rw", 7): self._clos,
            ioc("rw", 8): self._associate,
            ioc("w", 11): self._feature,
        }
        found = handlers[request](data) if request in handlers else None
        if found is not None:
            return found
        if self._answers is None or self._answers[0] is not self.machine:
            self._answers = self.machine, self._replies(self.machine)
        replies = self._answers[1]
        if (request, data) not in replies:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        return replies[request, data]

    def punit(self, package: int, number: int) -> Punit:
        punits = self.machine.speed_select
        return next(p for p in punits if (p.package, p.id) == (package, number))

    def _change(self, punit: Punit, **fields: Any) -> None:
        self.writes += 1
        if self.writes == self.fails_at:
            raise Killed
        if self.refuses:
            raise OSError(self.refuses, os.strerror(self.refuses))
        new = msgspec.structs.replace(punit, **fields)
        if new.turbo is Feature.ON and new.power is not Feature.ON:
            raise OSError(errno.EIO, "turbo frequency needs core power")
        rest = self.machine.speed_select
        self.machine = msgspec.structs.replace(
            self.machine, speed_select=tuple(new if p is punit else p for p in rest)
        )

    def _feature(self, data: bytes) -> tuple[int, bytes]:
        given = FeatureControl.from_buffer_copy(data)
        punit = self.punit(given.socket_id, given.power_domain_id)
        base, turbo = (switch(given.feature >> bit & 1) for bit in (0, 1))
        assert base is punit.base or punit.base is Feature.UNSUPPORTED
        self._change(punit, turbo=turbo)
        return 0, data

    def _power(self, data: bytes) -> tuple[int, bytes] | None:
        given = CorePower.from_buffer_copy(data)
        if not given.get_set:
            return None
        punit = self.punit(given.socket_id, given.power_domain_id)
        order = ORDERS[given.priority_type]
        self._change(punit, power=switch(given.enable), order=order)
        return 0, data

    def _clos(self, data: bytes) -> tuple[int, bytes] | None:
        given = ClosParam.from_buffer_copy(data)
        if not given.get_set:
            return None
        punit = self.punit(given.socket_id, given.power_domain_id)
        limits = given.min_freq_mhz // 100, given.max_freq_mhz // 100
        self._limit(punit, given.clos, given.prop_prio, *limits)
        return 0, data

    def _limit(
        self, punit: Punit, number: int, weight: int, low: int, high: int
    ) -> None:
        table = list(punit.clos)
        table[number] = Clos(
            weight,
            KiloHertz(low * 100_000) if low else None,
            KiloHertz(high * 100_000) if high < 255 else None,
            table[number].cpus,
        )
        self._change(punit, clos=tuple(table))

    def _associate(self, data: bytes) -> tuple[int, bytes] | None:
        head = ClosAssocHead.from_buffer_copy(data)
        if not head.get_set:
            return None
        assert head.punit_cpu_map == 1
        items = [
            ClosAssoc.from_buffer_copy(data, sizeof(head) + n * sizeof(ClosAssoc))
            for n in range(head.cmd_count)
        ]
        assert len(data) == sizeof(head) + sum(map(sizeof, items))
        for given in items:
            punit = self.punit(given.socket_id, given.power_domain_id)
            self._move(punit, given.logical_cpu, given.clos)
        return 0, data

    def _move(self, punit: Punit, core: int, number: int) -> None:
        cpus = cores_of(self.machine, punit)[core].cpus
        table = [
            msgspec.structs.replace(clos, cpus=clos.cpus - cpus) for clos in punit.clos
        ]
        table[number] = msgspec.structs.replace(
            table[number], cpus=table[number].cpus | cpus
        )
        self._change(punit, clos=tuple(table))

    def _registers(self, data: bytes) -> tuple[int, bytes]:
        items = [
            IoReg.from_buffer_copy(data, 4 + at) for at in range(0, len(data) - 4, 16)
        ]
        for given in items:
            if given.read_write:
                self._set_register(self._of_cpu(given.logical_cpu), given)
            else:
                punit = self._of_cpu(given.logical_cpu)
                given.value = self._register(punit, given.reg)
        return len(items), commands(c_uint32(len(items)), items)

    def _set_register(self, punit: Punit, given: IoReg) -> None:
        if given.reg >= 0x20:
            self._move(punit, (given.reg - 0x20) // 4, given.value >> 16)
            return
        assert given.value & 0xFF00000F == 0x7F00000F, "bits that are none of ours"
        weight, low, high = given.value >> 4, given.value >> 8, given.value >> 16
        number = (given.reg - 0x08) // 4
        self._limit(punit, number, weight & 0xF, low & 0xFF, high & 0xFF)

    def _register(self, punit: Punit, reg: int) -> int:
        if reg >= 0x20:
            core = cores_of(self.machine, punit)[(reg - 0x20) // 4]
            home = (n for n, clos in enumerate(punit.clos) if core.cpus <= clos.cpus)
            return next(home) << 16
        clos = punit.clos[(reg - 0x08) // 4]
        high = 255 if clos.max is None else clos.max // 100_000
        return (
            0x7F00000F | clos.weight << 4 | (clos.min or 0) // 100_000 << 8 | high << 16
        )

    def _letters(self, data: bytes) -> tuple[int, bytes] | None:
        given = MboxCmd.from_buffer_copy(data, 4)
        punit = self._of_cpu(given.logical_cpu)
        match given.command, given.sub_command, given.parameter:
            case 0x7F, 0x02, 0:
                # The base frequency's bit has to stay as it was.
                on = punit.base is Feature.ON
                assert bool(given.req_data & 1 << 17) is on
                self._change(punit, turbo=switch(given.req_data >> 16 & 1))
            case 0x95, 0x03, 0:
                self._change(punit, power=switch(given.req_data >> 16 & 1))
            case 0xD0, 0x02, 0x100:
                assert switch(given.req_data >> 1 & 1) is punit.power
                self._change(punit, order=ORDERS[given.req_data >> 2 & 1])
            case _:
                return None
        return 1, data

    def _of_cpu(self, cpu: int) -> Punit:
        return next(p for p in self.machine.speed_select if cpu in p.cpus)


def switch(bit: int) -> Feature:
    return Feature.ON if bit else Feature.OFF


def drivers(machine: Machine) -> tuple[IsstDriver, IsstDriver]:
    """Make a driver of each kind for a machine."""
    return IsstDriver(machine), IsstDriver(machine, mailbox)


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)
