"""Targets of the reconcilers: settings of the host, RDT groups, block I/O files.

They import the appliers late: few nodes need any, and no request waits for one.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.host_settings.wanted import Wanted, use_in_force
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.policy.events import Event
from nri_resmgr.values import HostError

if TYPE_CHECKING:
    from nri_resmgr.app.classes.blockio.files import BlockIoFiles
    from nri_resmgr.app.classes.rdt.groups import RdtGroups
    from nri_resmgr.app.host_settings.settings import HostSettings

HOST_LEFTOVERS: Final = ("host-changes", "speed-select-changes", "irqbalance")
RDT_LEFTOVERS: Final = ("resctrl",)
BLOCKIO_LEFTOVERS: Final = ("blockio",)


async def _import(module: str) -> None:
    """Import in a thread: it takes as long as fifty requests, which go first."""
    await asyncio.to_thread(import_module, module)


class _DaemonTarget:
    """The common part of all targets.

    Attributes:
        leftovers: Files in the state directory while there is something to restore.
    """

    leftovers: tuple[str, ...] = ()

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def note(self, event: Event) -> bool:  # noqa: ARG002 - most depend on the configuration only
        """See `ReconcilerTarget.note`."""
        return False

    def has_leftovers(self) -> bool:
        """See `ReconcilerTarget.has_leftovers`."""
        state = self._daemon.state
        try:
            return state is not None and any(
                state.read(name) is not None for name in self.leftovers
            )
        except HostError:
            return True  # the applier reports what is wrong with the directory


class HostTarget(_DaemonTarget):
    """CPU classes, Speed Select, interrupts and isolated containers."""

    leftovers = HOST_LEFTOVERS

    def note(self, event: Event) -> bool:  # noqa: ARG002 - any container may use classes
        """See `ReconcilerTarget.note`."""
        return True

    def is_wanted(self) -> bool:
        """See `ReconcilerTarget.is_wanted`."""
        return not use_in_force(self._daemon.policy).is_idle

    async def make_applier(self) -> HostSettings:
        """See `ReconcilerTarget.make_applier`."""
        await _import("nri_resmgr.app.host_settings.settings")
        from nri_resmgr.app.host_settings.report import HostReport
        from nri_resmgr.app.host_settings.settings import HostAccess, HostSettings

        daemon, options = self._daemon, self._daemon.options
        access = HostAccess(
            tree=daemon.tree,
            state=daemon.state,
            dry_run=options.dry_run,
            verify_interval=options.verify_interval,
            repairs=options.verify_repair == "yes",
        )
        report = HostReport(daemon.observers.history)
        return HostSettings(access, self._wanted, report)

    def abandon(self, why: str) -> None:
        """See `ReconcilerTarget.abandon`."""
        applier = self._daemon.reconcilers.host.applier
        if applier is not None:
            applier.report.stopped(why)

    def _wanted(self) -> Wanted:
        policy = self._daemon.policy
        config, use = policy.config, use_in_force(policy)
        return Wanted(use, config.cpu_classes, config.interrupts, policy.machine)


class RdtTarget(_DaemonTarget):
    """RDT groups."""

    leftovers = RDT_LEFTOVERS

    def is_wanted(self) -> bool:
        """See `ReconcilerTarget.is_wanted`."""
        return self._daemon.policy.config.rdt is not None

    async def make_applier(self) -> RdtGroups:
        """See `ReconcilerTarget.make_applier`."""
        await _import("nri_resmgr.app.classes.rdt.groups")
        from nri_resmgr.app.classes.rdt.groups import RdtGroups
        from nri_resmgr.app.classes.rdt.writer import RdtWriter, opener

        daemon, policy = self._daemon, self._daemon.policy
        host = policy.class_hosts.rdt
        writer = RdtWriter(daemon.tree, host, opener(daemon.tree, daemon.state))
        return RdtGroups(policy, host, writer)

    def abandon(self, why: str) -> None:
        """See `ReconcilerTarget.abandon`."""
        self._daemon.policy.class_hosts.rdt.problems.abandon(why)


class BlockIoTarget(_DaemonTarget):
    """Block I/O of running containers."""

    leftovers = BLOCKIO_LEFTOVERS

    def is_wanted(self) -> bool:
        """See `ReconcilerTarget.is_wanted`."""
        return self._daemon.policy.config.blockio is not None

    async def make_applier(self) -> BlockIoFiles:
        """See `ReconcilerTarget.make_applier`."""
        await _import("nri_resmgr.app.classes.blockio.files")
        from nri_resmgr.app.classes.blockio.files import BlockIoFiles
        from nri_resmgr.app.classes.blockio.record import BlockIoRecord

        daemon, policy = self._daemon, self._daemon.policy
        writer, record = policy.class_hosts.blockio_writer, BlockIoRecord(daemon.state)
        await asyncio.to_thread(record.load, writer.host)
        return BlockIoFiles(policy, writer, record)

    def abandon(self, why: str) -> None:
        """See `ReconcilerTarget.abandon`."""
        self._daemon.policy.class_hosts.blockio.problems.abandon(why)
