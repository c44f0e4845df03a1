"""Block I/O classes as configured, and the block devices of a machine."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

LEAST_WEIGHT: Final = 10
MOST_WEIGHT: Final = 1000

# I/O schedulers that apply weights of single devices.
_WEIGHING: Final = ("bfq", "cfq")


class IoLimits(msgspec.Struct, frozen=True):
    """Parameters of one device; None for the kernel's default.

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
        """Return these parameters, and those of *earlier* that are unset here."""
        given = msgspec.structs.asdict(self).items()
        here = {name: value for name, value in given if value is not None}
        return msgspec.structs.replace(earlier, **here)


class ParameterSet(msgspec.Struct, frozen=True):
    """One item of a class: parameters, and the devices that they are for.

    Attributes:
        patterns: Paths of devices as Go's globs. Without any, the weight is for all
            devices.
        limits: The parameters; throttles need *patterns*.
    """

    patterns: tuple[str, ...] = ()
    limits: IoLimits = IoLimits()


BlockIoConfig: TypeAlias = Mapping[str, tuple[ParameterSet, ...]]
"""Classes by name. Later sets of a class override earlier ones."""


class DeviceNumber(msgspec.Struct, frozen=True, order=True):
    """The number that names a block device in the kernel's files.

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
        name: The kernel's name, as ``sda``, for messages.
        scheduler: Its I/O scheduler, ``none`` for none; empty if unknown.
    """

    number: DeviceNumber
    name: str = ""
    scheduler: str = ""

    @property
    def may_weigh(self) -> bool:
        """True if its scheduler accepts weights, as far as known.

        With another scheduler the kernel refuses the weight, and then the runtime the
        container.
        """
        return not self.scheduler or self.scheduler in _WEIGHING


class NoticeKind(enum.StrEnum):
    """Kind of a difference from what a class asks for."""

    NO_MATCH = "no-match"
    NO_BLOCK_DEVICE = "no-block-device"
    PARTITION = "partition"
    UNREADABLE = "unreadable"
    NO_WEIGHTS = "no-weights"
    NO_FILE = "no-file"


class Notice(msgspec.Struct, frozen=True):
    """A difference from what a class asks for, to be reported."""

    kind: NoticeKind
    subject: str
    why: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.why}"


class MatchedDevices(msgspec.Struct, frozen=True):
    """The devices that match a pattern on a machine."""

    devices: tuple[BlockDevice, ...] = ()
    notices: tuple[Notice, ...] = ()
