"""Issues the ioctls of /dev/isst_interface."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from typing import Final, Protocol

import msgspec

from nri_resmgr.values import HostError

# Numbers and layouts of include/uapi/linux/isst_if.h. The driver exists on x86
# only, so byte order and ioctl encoding are x86's; a number's size field is that
# of a pointer, whatever it points to.
GET_PLATFORM_INFO: Final = 0x8008FE00
GET_PHY_ID: Final = 0xC008FE01
IO_CMD: Final = 0x4008FE02
MBOX_COMMAND: Final = 0xC008FE03
CORE_POWER_STATE: Final = 0xC008FE06
CLOS_PARAM: Final = 0xC008FE07
CLOS_ASSOC: Final = 0xC008FE08
PERF_LEVELS: Final = 0xC008FE09
PERF_SET_FEATURE: Final = 0x4008FE0B
GET_BASE_FREQ_CPU_MASK: Final = 0x8008FE0F
GET_TURBO_FREQ_INFO: Final = 0x8008FE10

PLATFORM_INFO: Final = struct.Struct("<HHHBB")
CORE_POWER: Final = struct.Struct("<6B")
CLOS: Final = struct.Struct("<4BHHBx")
PERF_LEVEL: Final = struct.Struct("<11B")
PERF_FEATURE: Final = struct.Struct("<3B")
CPU_MASK: Final = struct.Struct("<4B4xQH6x")
TURBO_FREQ: Final = struct.Struct("<BB66H")

# Commands with sub-commands of the mailbox, and registers (intel-speed-select,
# isst.h), that are both read and written.
LEVELS_INFO: Final = (0x7F, 0x00)
GET_CONTROL: Final = (0x7F, 0x01)
QOS_CONFIG: Final = (0xD0, 0x02)
CLOS_REGISTER: Final = 0x08
ASSOC_REGISTER: Final = 0x20

# Units of frequency in the registers: kHz per step, and the multiplier of no limit.
RATIO: Final = 100_000
NO_LIMIT: Final = 255

_COUNT: Final = struct.Struct("<I")
_CPU_MAP: Final = struct.Struct("<II")
_IO_REG: Final = struct.Struct("<IIII")
_MBOX: Final = struct.Struct("<IIIIHHI")
_ASSOC_HEAD: Final = struct.Struct("<HHH")
_ASSOC: Final = struct.Struct("<BBHH")

# The drivers' ISST_IF_CMD_LIMIT.
_MOST_COMMANDS: Final = 64
_LARGEST_BYTE: Final = 255
_NO_NUMBER: Final = 0xFFFFFFFF


@dataclass(eq=False)
class SpeedSelectUnsupported(HostError):
    """The driver or the hardware lacks a required fact."""

    why: str

    def __str__(self) -> str:
        return self.why


class IsstDevice(Protocol):
    """A device that takes ioctls."""

    def call(self, request: int, data: bytes) -> tuple[int, bytes]:
        """Issue an ioctl; return its result and the changed *data*.

        Raises:
            OSError: The driver refused.
        """


class OpenIsst(msgspec.Struct, frozen=True):
    """The kernel's device; the caller opens and closes it."""

    fd: int

    def call(self, request: int, data: bytes) -> tuple[int, bytes]:
        """See `IsstDevice.call`."""
        buffer = bytearray(data)
        result = ioctl(self.fd, request, buffer, True)
        return result, bytes(buffer)


def ask(
    device: IsstDevice, request: int, layout: struct.Struct, *head: int
) -> tuple[int, ...]:
    """Send a structure that begins with the bytes *head*; return its fields.

    Raises:
        SpeedSelectUnsupported: An id is too large for the driver.
        OSError: The driver refused.
    """
    if max(head, default=0) > _LARGEST_BYTE:
        raise SpeedSelectUnsupported(
            f"id {max(head)} exceeds the driver's limit {_LARGEST_BYTE}"
        )
    _, reply = device.call(request, bytes(head).ljust(layout.size, b"\0"))
    return layout.unpack(reply)


def punit_cpus(device: IsstDevice, cpus: Sequence[int]) -> list[int]:
    """Return the numbers of *cpus* in their punits, in the same order.

    Raises:
        SpeedSelectUnsupported: The driver has no number for a CPU.
        OSError: The driver refused.
    """
    rows = list(_batch(device, GET_PHY_ID, _CPU_MAP, [(cpu, 0) for cpu in cpus]))
    for cpu, number in rows:
        if number == _NO_NUMBER:
            raise SpeedSelectUnsupported(f"CPU {cpu} has no number in its punit")
    return [number for _, number in rows]


def registers(device: IsstDevice, cpu: int, offsets: Sequence[int]) -> list[int]:
    """Read registers of the punit of *cpu* (MMIO).

    Raises:
        SpeedSelectUnsupported: Only some were read.
        OSError: The driver refused.
    """
    items = [(0, cpu, offset, 0) for offset in offsets]
    return [value for _, _, _, value in _batch(device, IO_CMD, _IO_REG, items)]


def set_registers(device: IsstDevice, cpu: int, values: Mapping[int, int]) -> None:
    """Write registers of the punit of *cpu*, by offset (MMIO).

    Raises:
        SpeedSelectUnsupported: Only some were written.
        OSError: The driver refused.
    """
    items = [(1, cpu, offset, value) for offset, value in values.items()]
    for _ in _batch(device, IO_CMD, _IO_REG, items):
        pass


def mailbox(
    device: IsstDevice,
    cpu: int,
    command: tuple[int, int],
    data: int = 0,
    parameter: int = 0,
) -> int:
    """Send command and sub-command to the punit of *cpu*; return its reply.

    Raises:
        OSError: The driver refused.
    """
    item = (cpu, parameter, data, 0, *command, 0)
    ((_, _, _, reply, *_),) = _batch(device, MBOX_COMMAND, _MBOX, [item])
    return int(reply)


def associations(
    device: IsstDevice, package: int, punit: int, cores: Sequence[int]
) -> list[int]:
    """Return the class of service of each of the punit's *cores* (TPMI).

    Raises:
        OSError: The driver refused.
    """
    found: list[int] = []
    for part in _parts([(package, punit, core, 0) for core in cores]):
        head = _ASSOC_HEAD.pack(len(part), 0, 1)  # get, by the punit's own numbers
        _, reply = device.call(CLOS_ASSOC, head + _packed(_ASSOC, part))
        rows = _ASSOC.iter_unpack(reply[_ASSOC_HEAD.size :])
        found += [clos for _, _, _, clos in rows]
    return found


def associate(
    device: IsstDevice, package: int, punit: int, classes: Mapping[int, int]
) -> None:
    """Put cores of a punit, by its own numbers, into classes of service (TPMI).

    Raises:
        OSError: The driver refused.
    """
    for part in _parts([(package, punit, *pair) for pair in classes.items()]):
        head = _ASSOC_HEAD.pack(len(part), 1, 1)  # set, by the punit's own numbers
        device.call(CLOS_ASSOC, head + _packed(_ASSOC, part))


def _batch(
    device: IsstDevice,
    request: int,
    layout: struct.Struct,
    items: Sequence[tuple[int, ...]],
) -> Iterator[tuple[int, ...]]:
    """Send commands together; the ioctl's result is how many were done."""
    for part in _parts(items):
        data = _COUNT.pack(len(part)) + _packed(layout, part)
        done, reply = device.call(request, data)
        if done != len(part):
            raise SpeedSelectUnsupported(f"{done} of {len(part)} commands were done")
        yield from layout.iter_unpack(reply[_COUNT.size :])


def _parts(items: Sequence[tuple[int, ...]]) -> Iterator[Sequence[tuple[int, ...]]]:
    for start in range(0, len(items), _MOST_COMMANDS):
        yield items[start : start + _MOST_COMMANDS]


def _packed(layout: struct.Struct, items: Sequence[tuple[int, ...]]) -> bytes:
    return b"".join(layout.pack(*item) for item in items)
