"""Sets the same CPUs, memory nodes and weights in the systemd units of containers.

With the cgroup driver ``systemd`` a container's cgroup is that of a scope, and systemd
keeps values of its own. Were these to stay, `systemctl daemon-reload` would bring them
back into the cgroup until the runtime's record has followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.running.container import PinStatus
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.finder import cgroup_of_oci, unit_of_oci
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.systemd_units import (
    NoSuchUnit,
    UnitRejected,
    UnitValues,
    load_bus,
)
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import NO_PIN
from nri_resmgr.values import HostError
from nri_resmgr.values.cpu_weights import clamped_shares, weight_for

if TYPE_CHECKING:
    from nri_resmgr.host.systemd_bus import SystemdBus  # see `load_bus`

log = Logger(__name__)

ADDRESS_VARIABLE: Final = "DBUS_SYSTEM_BUS_ADDRESS"

_SOCKET: Final = "/run/dbus/system_bus_socket"

COLLECT: Final = 0.5
"""Seconds for which values are collected: most exclusive containers start by then, and
some are removed again. systemd needs the values at its next reload only."""

FIRST_PAUSE: Final = 1.0
"""Seconds until the bus is tried again; doubled with each failure."""

LAST_PAUSE: Final = 10.0
"""Longest pause in seconds, as that of a part which fails: see docs/faults.md."""

_MEANWHILE: Final = (
    "a daemon-reload of systemd brings old CPUs back into cgroups until the runtime's "
    "record follows, or verification repairs them"
)


class UnitSource(Protocol):
    """The values of containers; `ByCgroup` has them."""

    def status_of(self, container: str) -> PinStatus | None:
        """Return where the pin of a container has arrived; None for an unknown one."""

    @property
    def moves_memory(self) -> bool:
        """True if memory nodes are being written to any cgroup."""


@attrs.define(eq=False, repr=False)
class UnitCounts:
    """Counts of units since the start.

    Attributes:
        set: Calls that systemd accepted.
        rejected: Calls that it rejected, for other units than those that have ended.
    """

    set: int = 0
    rejected: int = 0


class UnitProperties:
    """Sets AllowedCPUs, AllowedMemoryNodes and CPUWeight of containers' units.

    Each is set once its cgroup has the value, some time later, one after the other.
    Nothing waits for this. Without bus or library everything else works.

    Args:
        tree: The host.
        address: Of the bus; see `bus_address`.
        collect: See `COLLECT`.
        first_pause: See `FIRST_PAUSE`.

    Attributes:
        counts: Counts of units.
        problem: Why units are not set at present; empty while they are.
    """

    def __init__(
        self,
        tree: Tree,
        address: str,
        collect: float = COLLECT,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._tree = tree
        self._address = address
        self._collect = collect
        self._first_pause = first_pause
        self._waiting: dict[str, CgroupReference] = {}
        self._has_waiting = asyncio.Event()
        self._is_unreachable = False
        self._rejections: set[str] = set()  # errors that were logged
        self.counts = UnitCounts()
        self.problem = ""

    @property
    def waiting(self) -> frozenset[str]:
        """The containers whose units are not set yet."""
        return frozenset(self._waiting)

    def queue(self, container: CgroupReference) -> None:
        """Have the unit of a container set, if it has one, to what it has by then."""
        if unit_of_oci(container.path):
            self._waiting[container.id] = container
            self._has_waiting.set()

    async def run(self, source: UnitSource) -> None:
        """Set what is queued until cancelled."""
        pause = self._first_pause
        while True:
            done = self.counts.set
            try:
                await self._set_all(source)
            except HostError as error:
                self._note_unreachable(str(error))
            if self.counts.set != done:
                pause = self._first_pause
            await asyncio.sleep(pause)
            pause = min(2.0 * pause, LAST_PAUSE)
            # The bus may stay away for as long as containers come and go.
            for key in tuple(self._waiting):
                if not _is_to_set(source.status_of(key)):
                    del self._waiting[key]
            if self._waiting:
                self._has_waiting.set()

    async def _set_all(self, source: UnitSource) -> None:
        """Set what is queued by one connection, until that fails.

        Raises:
            LibraryMissing: The library cannot be imported.
            SystemdUnreachable: The bus or systemd does not answer.
        """
        await self._has_waiting.wait()
        bus = await (await in_thread(load_bus)).connect(self._address)
        try:
            while True:
                await self._has_waiting.wait()
                await asyncio.sleep(self._collect)
                # Those that stay are looked at again with the next one.
                self._has_waiting.clear()
                for one in tuple(self._waiting.values()):
                    # While the kernel moves memory of any container, writing a cpuset
                    # takes as long: that must not stop systemd.
                    while source.moves_memory:  # noqa: ASYNC110 - as often as collected
                        await asyncio.sleep(self._collect)
                    await self._set(bus, one, source.status_of(one.id))
        finally:
            bus.close()

    async def _set(
        self, bus: SystemdBus, container: CgroupReference, status: PinStatus | None
    ) -> None:
        key = container.id
        if status is not None and _not_in_force(status):
            return  # its cgroup gets another value now
        # Before the call: a value that changes meanwhile is queued again.
        self._waiting.pop(key, None)
        if status is None or not _is_to_set(status):
            return
        unit = unit_of_oci(container.path)
        try:
            await bus.set_unit(unit, _values_of(status))
        except NoSuchUnit as error:
            if await in_thread(partial(self._has_cgroup, container)):
                self._note_rejected(error)
        except UnitRejected as error:
            self._note_rejected(error)
        except HostError:
            self._waiting.setdefault(key, container)
            raise
        else:
            self.counts.set += 1
            self._note_success()

    def _has_cgroup(self, container: CgroupReference) -> bool:
        folder = f"{CGROUP_ROOT}/{cgroup_of_oci(container.path)}"
        try:
            return self._tree.read(f"{folder}/cgroup.procs") is not None
        except HostError:
            return True

    def _note_rejected(self, error: UnitRejected) -> None:
        self.counts.rejected += 1
        self.problem = str(error)
        # Without the right to do it each unit has the same error.
        if error.error not in self._rejections:
            self._rejections.add(error.error)
            log.warning("units.rejected", why=self.problem, meanwhile=_MEANWHILE)

    def _note_unreachable(self, why: str) -> None:
        self.problem = why
        if not self._is_unreachable:
            self._is_unreachable = True
            log.warning("units.not-set", why=why, meanwhile=_MEANWHILE)

    def _note_success(self) -> None:
        self.problem = ""
        if self._is_unreachable:
            self._is_unreachable = False
            log.info("units.set-again")


def _values_of(status: PinStatus) -> UnitValues:
    pin = status.decided
    is_weighted = bool(pin.shares) and status.has_own_weight
    weight = weight_for(clamped_shares(pin.shares)) if is_weighted else 0
    return UnitValues(pin.cpus, pin.mems, weight)


def _not_in_force(status: PinStatus) -> bool:
    # systemd writes all if one is set. With an old set of nodes it would move the
    # container's memory back.
    return bool(status.decided.since(status.in_force or NO_PIN))


def _is_to_set(status: PinStatus | None) -> bool:
    # Where the runtime writes the cgroup, it sets the unit as well.
    return status is not None and bool(status.decided) and not status.by_runtime


def bus_address(environment: Mapping[str, str], root: str) -> str:
    """Return the address of the system bus.

    Args:
        environment: Of this process.
        root: Prefix of paths of the host; empty on the host itself.

    Source:
        D-Bus Specification, "Well-known Message Bus Instances".
    """
    return environment.get(ADDRESS_VARIABLE) or f"unix:path={root}{_SOCKET}"
