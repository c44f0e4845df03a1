"""What an operator wrote of block I/O, and the devices that a machine has for it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

LEAST_WEIGHT: Final = 10
MOST_WEIGHT: Final = 1000

# What a device is scheduled by, where weights of single devices count.
_WEIGHING: Final = ("bfq", "cfq")


class IoLimits(msgspec.Struct, frozen=True):
    """Parameters of one device; None leaves what the kernel has.

    Attributes:
        weight: Share of the device, 10 to 1000.
        read_bps: Bytes per second; 0 is no limit.
        write_bps: Bytes per second; 0 is no limit.
        read_iops: Requests per second; 0 is no limit.
        write_iops: Requests per second; 0 is no limit.
    """

    weight: int | None = None
    read_bps: int | None = None
    write_bps: int | None = None
    read_iops: int | None = None
    write_iops: int | None = None

    def over(self, earlier: IoLimits) -> IoLimits:
        """Return these, and of *earlier* what these say nothing of."""
        return IoLimits(
            *(_first(getattr(self, n), getattr(earlier, n)) for n in _NAMES)
        )


_NAMES: Final = ("weight", "read_bps", "write_bps", "read_iops", "write_iops")


def _first(later: int | None, earlier: int | None) -> int | None:
    return earlier if later is None else later


class ParameterSet(msgspec.Struct, frozen=True):
    """One item of a class: parameters, and for which devices.

    Attributes:
        patterns: Paths of devices as Go's globs. Without any, the weight is that of
            the class on all devices.
        limits: Throttles are for devices only.
    """

    patterns: tuple[str, ...] = ()
    limits: IoLimits = IoLimits()


BlockIoConfig: TypeAlias = Mapping[str, tuple[ParameterSet, ...]]
"""Classes by name. Later sets of a class override earlier ones."""


class DeviceNumber(msgspec.Struct, frozen=True):
    """How the kernel's files name a block device.

    >>> str(DeviceNumber(8, 16))
    '8:16'
    """

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}:{self.minor}"


class BlockDevice(msgspec.Struct, frozen=True):
    """A whole disk, or what the kernel treats like one.

    Attributes:
        number: Major and minor number.
        name: The kernel's, ``sda``; for people.
        scheduler: Its I/O scheduler, ``none`` for none; empty where unknown.
    """

    number: DeviceNumber
    name: str = ""
    scheduler: str = ""

    @property
    def may_weigh(self) -> bool:
        """Whether its scheduler takes weights, as far as is known.

        The kernel refuses a weight of a device that is scheduled by something else,
        and the runtime then refuses the container.
        """
        return not self.scheduler or self.scheduler in _WEIGHING


class NoticeKind(enum.StrEnum):
    """What is not as a class would have it."""

    NO_MATCH = "no-match"
    NO_BLOCK_DEVICE = "no-block-device"
    PARTITION = "partition"
    UNREADABLE = "unreadable"
    NO_WEIGHTS = "no-weights"
    NO_FILE = "no-file"


class Notice(msgspec.Struct, frozen=True):
    """Something that the operator should know, and that stops nothing.

    Attributes:
        kind: What it is.
        subject: The pattern, device or file that it is about.
        why: What is the matter, and what would help.
    """

    kind: NoticeKind
    subject: str
    why: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.why}"


class MatchedDevices(msgspec.Struct, frozen=True):
    """The devices that a pattern names on a machine.

    Attributes:
        devices: Each of them once.
        notices: What was left out, or stands for something else.
    """

    devices: tuple[BlockDevice, ...] = ()
    notices: tuple[Notice, ...] = ()
