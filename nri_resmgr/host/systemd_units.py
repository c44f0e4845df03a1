"""Values of the units of systemd, errors of calls about them, and the client's import.

This needs no optional dependency, so callers import it at the top of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from nri_resmgr.values import CpuSet, HostError, NodeSet

if TYPE_CHECKING:
    from nri_resmgr.host.systemd_bus import SystemdBus  # see `load_bus`


@dataclass(eq=False)
class LibraryMissing(HostError):
    """The library for D-Bus cannot be imported; a later try may succeed."""

    def __str__(self) -> str:
        return "the Python package jeepney is missing: install nri-resmgr[systemd]"


@dataclass(eq=False)
class SystemdUnreachable(HostError):
    """The bus or systemd does not answer; a later try may succeed."""

    socket: str
    why: str

    def __str__(self) -> str:
        return f"systemd cannot be reached by {self.socket}: {self.why}"


@dataclass(eq=False)
class UnitRejected(HostError):
    """The bus or systemd refused a call about a unit."""

    unit: str
    error: str
    why: str

    def __str__(self) -> str:
        return f"systemd refused a call about {self.unit}: {self.why}"


class NoSuchUnit(UnitRejected):
    """The unit does not exist, or not any more."""


@dataclass(eq=False)
class UnitNotActive(HostError):
    """A unit does not run, or not again after a restart."""

    unit: str
    state: str

    def __str__(self) -> str:
        return f"{self.unit} is {self.state}, not active"


class UnitValues(msgspec.Struct, frozen=True):
    """Values of a unit; empty sets and 0 leave a property as it is.

    Attributes:
        weight: As in ``cpu.weight``, 1 to 10000.
    """

    cpus: CpuSet
    mems: NodeSet
    weight: int = 0


def load_bus() -> type[SystemdBus]:
    """Import the client of systemd, which takes a while the first time.

    Raises:
        LibraryMissing: Its library cannot be imported; also if a file of the library
            cannot be examined at the moment.
    """
    try:
        # Late: it needs jeepney, an optional dependency.
        from nri_resmgr.host.systemd_bus import SystemdBus
    except ImportError as error:
        raise LibraryMissing from error
    return SystemdBus
