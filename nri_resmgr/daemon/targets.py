"""Targets that the daemon reconciles: host settings, RDT groups, files of containers.

The appliers are imported late: few nodes need any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from nri_resmgr.app.background.threads import imported, in_thread
from nri_resmgr.app.host_settings.wanted import Wanted, use_in_force
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.policy.events import Created, Event, Updated
from nri_resmgr.values import HostError

if TYPE_CHECKING:  # few nodes need an applier
    from nri_resmgr.app.classes.blockio.files import BlockIoFiles
    from nri_resmgr.app.classes.limits.files import LimitFiles
    from nri_resmgr.app.classes.memory.top_tier import TopTierLimits
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
        await imported("nri_resmgr.app.host_settings.settings")
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
        # The counters go on after a fault.
        applier = daemon.reconcilers.host.applier
        found = applier.report if applier else None
        found = found or report.HostReport(daemon.observers.history)
        return settings.HostSettings(access, self._wanted, found)

    def note_fault(self, why: str) -> None:
        """Do nothing: `Reconciler.problem` is shown instead of the last step."""

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
        await imported("nri_resmgr.app.classes.rdt.groups")
        # Late: few nodes use RDT classes.
        from nri_resmgr.app.classes.rdt import groups, writer

        daemon, policy = self._daemon, self._daemon.policy
        host = policy.class_hosts.rdt
        opener = writer.opener(daemon.tree, daemon.state)
        made = writer.RdtWriter(daemon.tree, host, opener)
        return groups.RdtGroups(policy, host, made)

    def note_fault(self, why: str) -> None:
        """Report that groups are not reconciled since a fault."""
        self._daemon.policy.class_hosts.rdt.problems.note_fault(why)


class BlockIoTarget(_Target):
    """Block I/O of running containers."""

    leftovers = BLOCKIO_LEFTOVERS

    def is_wanted(self) -> bool:
        """Return whether block I/O classes are configured."""
        return self._daemon.policy.config.blockio is not None

    async def make_applier(self) -> BlockIoFiles:
        """Import and make the applier."""
        await imported("nri_resmgr.app.classes.blockio.files")
        # Late: few nodes use block I/O classes.
        from nri_resmgr.app.classes.blockio import files, record

        policy, found = self._daemon.policy, record.BlockIoRecord(self._daemon.state)
        writer = policy.class_hosts.blockio_writer
        await in_thread(lambda: found.load(writer.host))
        return files.BlockIoFiles(policy, writer, found)

    def note_fault(self, why: str) -> None:
        """Report that files are not reconciled since a fault."""
        self._daemon.policy.class_hosts.blockio.problems.note_fault(why)


class TopTierTarget(_Target):
    """Limits of fast memory of running containers."""

    leftovers = ()

    def note(self, event: Event) -> bool:
        """Return whether a new or changed container has a limit."""
        return isinstance(event, Created | Updated) and (
            event.spec.preferences.top_tier_limit is not None
        )

    def is_wanted(self) -> bool:
        """Return whether a container has a limit."""
        entries = self._daemon.policy.state.ledger.entries.values()
        return any(one.spec.preferences.top_tier_limit is not None for one in entries)

    async def make_applier(self) -> TopTierLimits:
        """Import and make the applier."""
        await imported("nri_resmgr.app.classes.memory.top_tier")
        # Late: few pods have such limits.
        from nri_resmgr.app.classes.memory.top_tier import TopTierLimits

        daemon, policy = self._daemon, self._daemon.policy
        tree = WritableHostTree(daemon.tree.root)
        history = daemon.observers.history
        return TopTierLimits(policy, policy.class_hosts.top_tier, tree, history)

    def note_fault(self, why: str) -> None:
        """Report that limits are not reconciled since a fault."""
        self._daemon.policy.class_hosts.top_tier.problems.note_fault(why)


class LimitTarget(_Target):
    """CPU and memory limits of adjusted containers."""

    leftovers = ()

    def note(self, event: Event) -> bool:
        """Return whether a container was adjusted."""
        return isinstance(event, Updated) and event.spec.adjusted is not None

    def is_wanted(self) -> bool:
        """Return whether a container is, or was, adjusted."""
        policy = self._daemon.policy
        entries = policy.state.ledger.entries.values()
        return any(one.spec.adjusted is not None for one in entries) or bool(
            policy.class_hosts.limits.applied
        )

    async def make_applier(self) -> LimitFiles:
        """Import and make the applier."""
        await imported("nri_resmgr.app.classes.limits.files")
        # Late: few nodes have adjustments.
        from nri_resmgr.app.classes.limits.files import LimitFiles

        policy = self._daemon.policy
        tree = WritableHostTree(self._daemon.tree.root)
        return LimitFiles(policy, policy.class_hosts.limits, tree)

    def note_fault(self, why: str) -> None:
        """Report that limits are not reconciled since a fault."""
        self._daemon.policy.class_hosts.limits.problems.note_fault(why)
