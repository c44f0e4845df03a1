"""What the daemon reconciles: settings of the host, RDT groups, block I/O files.

The appliers are imported late, and in a thread: few nodes need any, and an import takes
as long as fifty requests, which go first.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from nri_resmgr.app.host_settings.wanted import Wanted, use_in_force
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.policy.events import Event
from nri_resmgr.values import HostError

if TYPE_CHECKING:
    from nri_resmgr.app.classes.blockio.files import BlockIoFiles
    from nri_resmgr.app.classes.rdt.groups import RdtGroups
    from nri_resmgr.app.host_settings.settings import HostSettings

# Files in the state directory while there are changes to undo.
HOST_LEFTOVERS: Final = ("host-changes", "speed-select-changes", "irqbalance")
RDT_LEFTOVERS: Final = ("resctrl",)
BLOCKIO_LEFTOVERS: Final = ("blockio",)


class _Target:
    """Methods that the targets share; see `nri_resmgr.app.background.reconciler`."""

    leftovers: ClassVar[tuple[str, ...]]

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def note(self, event: Event) -> bool:  # noqa: ARG002 - only a configuration has classes
        """Return False: no event makes an applier necessary."""
        return False

    def has_leftovers(self) -> bool:
        """Return whether the state directory has changes of an earlier process."""
        state = self._daemon.state
        try:
            return state is not None and any(
                state.read(name) is not None for name in self.leftovers
            )
        except HostError:
            return True  # the applier reports the error


class HostTarget(_Target):
    """CPU classes, Speed Select, interrupts and isolated containers."""

    leftovers = HOST_LEFTOVERS

    def note(self, event: Event) -> bool:  # noqa: ARG002 - any container may
        """Return True: a container may ask for a setting of the host."""
        return True

    def is_wanted(self) -> bool:
        """Return whether the policy wants anything of its host."""
        return not use_in_force(self._daemon.policy).is_idle

    async def make_applier(self) -> HostSettings:
        """Import and make the applier."""
        await asyncio.to_thread(import_module, "nri_resmgr.app.host_settings.settings")
        # Late: few nodes have settings of the host.
        from nri_resmgr.app.host_settings import report, settings

        daemon, options = self._daemon, self._daemon.options
        access = settings.HostAccess(
            tree=daemon.tree,
            state=daemon.state,
            dry_run=options.dry_run,
            verify_interval=options.verify_interval,
            repairs=options.verify_repair == "yes",
        )
        history = report.HostReport(daemon.observers.history)
        return settings.HostSettings(access, self._wanted, history)

    def abandon(self, why: str) -> None:
        """Report that no settings are applied any more."""
        applier = self._daemon.reconcilers.host.applier
        if applier is not None:
            applier.report.stopped(why)

    def _wanted(self) -> Wanted:
        policy = self._daemon.policy
        config, use = policy.config, use_in_force(policy)
        return Wanted(use, config.cpu_classes, config.interrupts, policy.machine)


class RdtTarget(_Target):
    """RDT groups."""

    leftovers = RDT_LEFTOVERS

    def is_wanted(self) -> bool:
        """Return whether RDT is configured."""
        return self._daemon.policy.config.rdt is not None

    async def make_applier(self) -> RdtGroups:
        """Import and make the applier."""
        await asyncio.to_thread(import_module, "nri_resmgr.app.classes.rdt.groups")
        # Late: few nodes use RDT classes.
        from nri_resmgr.app.classes.rdt import groups, writer

        daemon, policy = self._daemon, self._daemon.policy
        host = policy.class_hosts.rdt
        opener = writer.opener(daemon.tree, daemon.state)
        made = writer.RdtWriter(daemon.tree, host, opener)
        return groups.RdtGroups(policy, host, made)

    def abandon(self, why: str) -> None:
        """Report that groups are not reconciled any more."""
        self._daemon.policy.class_hosts.rdt.problems.abandon(why)


class BlockIoTarget(_Target):
    """Block I/O of running containers."""

    leftovers = BLOCKIO_LEFTOVERS

    def is_wanted(self) -> bool:
        """Return whether block I/O classes are configured."""
        return self._daemon.policy.config.blockio is not None

    async def make_applier(self) -> BlockIoFiles:
        """Import and make the applier."""
        await asyncio.to_thread(import_module, "nri_resmgr.app.classes.blockio.files")
        # Late: few nodes use block I/O classes.
        from nri_resmgr.app.classes.blockio import files, record

        policy, found = self._daemon.policy, record.BlockIoRecord(self._daemon.state)
        writer = policy.class_hosts.blockio_writer
        await asyncio.to_thread(found.load, writer.host)
        return files.BlockIoFiles(policy, writer, found)

    def abandon(self, why: str) -> None:
        """Report that files are not reconciled any more."""
        self._daemon.policy.class_hosts.blockio.problems.abandon(why)
