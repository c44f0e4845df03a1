"""A change of the runtime's files that the host's systemd puts in force.

A container that prepares its node cannot run ``systemctl``, and no person watches it.
Therefore all that can be checked is checked before the change, and a runtime that does
not start with the new files gets the old ones back.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nri_resmgr.app.running.units import bus_address
from nri_resmgr.host.systemd_units import UnitNotActive, load_bus
from nri_resmgr.values.errors import HostError

if TYPE_CHECKING:
    from nri_resmgr.host.systemd_bus import SystemdBus  # see `load_bus`


@dataclass(eq=False)
class NotRestartable(HostError):
    """The runtime cannot be restarted; nothing was changed."""

    why: str

    def __str__(self) -> str:
        return (
            f"nothing was changed, because the runtime cannot be restarted: {self.why}"
        )


@dataclass(eq=False)
class ChangeReverted(HostError):
    """The runtime was not restarted, or did not start; it has its former files.

    Attributes:
        unit: Its unit.
        why: Why it does not run with the new ones.
        again: Why it does not run with the former ones, either; empty if it does.
    """

    unit: str
    why: str
    again: str = ""

    def __str__(self) -> str:
        now = f"; now {self.again}" if self.again else ""
        return (
            f"the files are as before, because {self.unit} did not restart with the "
            f"changed ones: {self.why}{now}; see `journalctl -u {self.unit}`"
        )


def restart_with(
    unit: str, host_root: str, change: Callable[[], None], revert: Callable[[], None]
) -> None:
    """Change files, and restart the host's unit that reads them.

    Args:
        unit: A running one.
        host_root: Where the host's root is mounted, without a slash at its end.
        change: Changes the files.
        revert: Changes them back.

    Raises:
        NotRestartable: Nothing was changed.
        ChangeReverted: The files were changed back.
    """
    address = bus_address(os.environ, host_root)
    asyncio.run(_restart_with(unit, address, change, revert))


async def _restart_with(
    unit: str, address: str, change: Callable[[], None], revert: Callable[[], None]
) -> None:
    try:
        bus = await load_bus().connect(address)
    except HostError as error:
        raise NotRestartable(str(error)) from error
    try:
        await _check(bus, unit)
        change()
        try:
            await bus.restart_unit(unit)
        except HostError as error:
            revert()
            again = ""
            # Otherwise it still runs with the former files.
            if isinstance(error, UnitNotActive):
                again = await _failure(bus, unit)
            raise ChangeReverted(unit, str(error), again) from error
    finally:
        bus.close()


async def _check(bus: SystemdBus, unit: str) -> None:
    try:
        await bus.check_active(unit)
    except HostError as error:
        raise NotRestartable(str(error)) from error


async def _failure(bus: SystemdBus, unit: str) -> str:
    """Restart the unit; return why that failed, or an empty text."""
    try:
        await bus.restart_unit(unit)
    except HostError as error:
        return str(error)
    return ""
