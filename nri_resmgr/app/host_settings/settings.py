"""Applier of the host's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

import attrs
import msgspec

from nri_resmgr.app.background.repairs import Repairs
from nri_resmgr.app.host_settings.facts import FactsReader
from nri_resmgr.app.host_settings.plan import (
    NO_PLAN,
    HostFacts,
    HostPlan,
    moves_interrupts,
    plan_of,
)
from nri_resmgr.app.host_settings.report import HostReport, Round
from nri_resmgr.app.host_settings.wanted import Wanted
from nri_resmgr.app.host_settings.writer import HostWriter, OpenDevice
from nri_resmgr.host.irqbalance import IrqbalanceResult
from nri_resmgr.host.knobs.report import KnobDrift
from nri_resmgr.host.speed_select.device import open_isst
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Event
from nri_resmgr.values import HostError

log = Logger(__name__)

# A write takes microseconds, so all files of a machine may be repaired at once.
_AT_ONCE: Final = 10_000

# Without verification, new interrupts still have to be placed.
_INTERVAL: Final = 60.0  # seconds

_NO_STATE: Final = (
    "no state directory: the original settings could not be kept for the next start; "
    "see --state-dir"
)


class HostAccess(msgspec.Struct, frozen=True):
    """The host, and options for its settings.

    Attributes:
        state: State directory for the original settings; None for none.
        dry_run: Whether changes are only logged.
        verify_interval: Seconds between two comparisons of the host with the plan; 0
            for none.
        repairs: Whether files that others have changed are written again.
    """

    tree: HostTree
    state: StateDir | None
    dry_run: bool = False
    verify_interval: float = 0.0
    repairs: bool = False
    open_device: OpenDevice = open_isst


class HostSettings:
    """Applies what a policy wants of its host; an `Applier`.

    Attributes:
        is_waiting: Whether an isolated container had no cgroup yet in the last step.
    """

    def __init__(
        self, access: HostAccess, wanted: Callable[[], Wanted], report: HostReport
    ) -> None:
        self.report = report
        self.is_waiting = False
        self._access = access
        self._look_up = wanted
        self._wanted: Wanted | None = None
        self._reader = FactsReader(access.tree)
        self._writer: HostWriter | None = None
        self._due: list[str] = []
        interval = access.verify_interval if access.repairs else 0.0
        # It sends nothing: due paths are written with the rest of the step.
        self._repairs = Repairs(self._due.extend, interval, _AT_ONCE)
        self._last = HostFacts(), NO_PLAN
        self._failed: frozenset[str] = frozenset()

    @property
    def period(self) -> float | None:
        """Seconds between two comparisons; None while nothing is wanted or failing."""
        is_done = not (self.report.why_not or self.report.failing)
        if is_done and self._wanted is not None and self._wanted.use.is_idle:
            return None
        return self._access.verify_interval or _INTERVAL

    def note(self, event: Event) -> bool:  # noqa: ARG002 - any may move containers
        """Return True: the next step compares what is wanted with the last step."""
        return True

    def configured(self) -> None:
        """Do nothing: each step looks up what is wanted."""

    def next_step(self, *, looks: bool) -> HostStep | None:
        """Return a step if what is wanted has changed, or if it *looks*."""
        wanted = self._look_up()
        if not looks and not self.is_waiting and wanted == self._wanted:
            return None
        self._wanted = wanted
        if self._access.state is None and not self._access.dry_run:
            self.report.stopped("" if wanted.use.is_idle else _NO_STATE)
            return None
        return HostStep(self, wanted, looks)

    def restore(self) -> None:
        """Restore every setting."""
        if self._writer is None or self._writer.is_idle:
            return
        try:
            report = self._writer.restore_all()
        except HostError as error:
            # Files may be restored already; the journals have the rest.
            log.error("host.not-restored", why=str(error))
            return
        log.info("host.restored", files=len(report.restored))
        for one in report.failed:
            log.error("host.not-restored", why=str(one))

    def apply(self, wanted: Wanted, *, looks: bool) -> Round:
        """Write what is wanted; in a thread.

        Args:
            wanted: What the policy wants now.
            looks: Whether to compare the host with the last plan, and to read its
                interrupts again.

        Raises:
            HostError: The host or the state directory cannot be read.
        """
        writer = self._opened()
        if writer is not None:
            writer.use_machine(wanted.machine)
            if wanted.use.is_idle and writer.is_idle:
                self.is_waiting = False
                self._last = HostFacts(), NO_PLAN
                return Round(looked=looks)
        facts = self._reader.read(wanted, writer, afresh=looks)
        plan = plan_of(wanted.use, wanted.classes, facts)
        self.is_waiting = bool(_waiting(wanted, facts))
        if writer is None:
            return self._dry_run(plan)
        return self._written(writer, plan, facts, wanted, looks=looks)

    def _opened(self) -> HostWriter | None:
        access, state = self._access, self._access.state
        if self._writer is None and state is not None and not access.dry_run:
            self._writer = HostWriter(access.tree, state, access.open_device)
        return self._writer

    def _dry_run(self, plan: HostPlan) -> Round:
        """Log what a plan would write."""
        if plan.files != self._last[1].files:
            files = dict(plan.files)
            log.info("host.would-change", files=len(files), punits=len(plan.punits))
            for path, text in files.items():
                log.debug("host.would-write", path=path, text=text)
        self._last = HostFacts(), plan
        return Round(plan)

    def _written(
        self,
        writer: HostWriter,
        plan: HostPlan,
        facts: HostFacts,
        wanted: Wanted,
        *,
        looks: bool,
    ) -> Round:
        verifies = looks and bool(self._access.verify_interval)
        drifts = self._drifts(writer, plan) if verifies else ()
        abandoned = self._repair(plan.files, drifts) if verifies else ()
        is_new = looks or plan.placement != self._last[1].placement
        again = frozenset(self._due)
        self._due.clear()
        report = writer.apply(plan, facts, again, sends_bans=is_new)
        ineffective = self._reader.ineffective_isolation_of(facts)
        self._last = facts, plan
        self._failed = frozenset(one.path for one in report.failed)
        knobs = writer.knobs
        seen = {path: text for path, text in knobs.seen.items() if path in plan.files}
        left = (one for one in drifts if one.path not in again)
        seen |= {one.path: one.found or "" for one in left}
        irqbalance = (
            writer.irqbalance if moves_interrupts(wanted.use) else IrqbalanceResult()
        )
        return Round(
            plan,
            facts,
            report,
            looked=verifies,
            drifts=drifts,
            abandoned=abandoned,
            refused=dict(knobs.refused),
            irqbalance=irqbalance,
            seen=seen,
            waiting=_waiting(wanted, facts),
            ineffective=ineffective,
        )

    def _drifts(self, writer: HostWriter, plan: HostPlan) -> tuple[KnobDrift, ...]:
        """Return what others have changed, of what is still wanted."""
        facts, last = self._last
        is_balanced = self._reader.irqbalance is not None
        found = writer.verify(last, facts, is_balanced=is_balanced)
        return tuple(
            one
            for one in found
            # A file that could not be written differs because of that.
            if one.path not in self._failed
            and last.files.get(one.path) == plan.files.get(one.path)
            and (one.path in plan.files or last.punits == plan.punits)
        )

    def _repair(
        self, paths: Iterable[str], drifts: tuple[KnobDrift, ...]
    ) -> tuple[str, ...]:
        """Note files to write again; return those that are abandoned."""
        if not self._access.repairs:
            return ()
        drifting, now = {one.path for one in drifts}, monotonic()
        for path in paths:
            if path not in drifting:
                self._repairs.well(path, now)
        abandoned, _ = self._repairs.repair(sorted(drifting), now)
        return abandoned


@attrs.define(eq=False)
class HostStep:
    """The wanted settings of a host at one moment."""

    settings: HostSettings
    wanted: Wanted
    looks: bool
    _done: Round | HostError = attrs.field(factory=Round, init=False)

    def apply(self) -> None:
        """Write the settings."""
        try:
            self._done = self.settings.apply(self.wanted, looks=self.looks)
        except HostError as error:
            self._done = error

    async def report(self) -> None:
        """Report the outcome."""
        report = self.settings.report
        if isinstance(self._done, HostError):
            report.stopped(str(self._done))
        else:
            report.stopped("")
            report.done(self._done)


def _waiting(wanted: Wanted, facts: HostFacts) -> frozenset[str]:
    """Return the isolated containers whose cgroup is to be set and not there yet."""
    asking = {
        one.container for one in wanted.use.isolated if one.request.is_about_cgroups
    }
    return frozenset(asking - {one.container for _, one in facts.cgroups})
