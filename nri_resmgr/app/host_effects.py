"""Has the host's own files follow what a policy wants, round by round."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Final

import msgspec

from nri_resmgr.app.host_facts import FactsReader
from nri_resmgr.app.host_plan import (
    NO_PLAN,
    HostFacts,
    HostPlan,
    moves_interrupts,
    plan_of,
)
from nri_resmgr.app.host_report import HostReport, Round
from nri_resmgr.app.host_wanted import Wanted
from nri_resmgr.app.host_writer import HostWriter, OpenDevice
from nri_resmgr.app.repairs import Repairs
from nri_resmgr.host.knob_report import Drift
from nri_resmgr.host.speed_select import open_isst
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError

log = Logger(__name__)

PATIENCE: Final = 5.0
"""Seconds for setting everything back at the end; the next start does the rest."""

# A write of a host's file takes microseconds: all of a machine's are few.
_AT_ONCE: Final = 10_000

_NO_STATE: Final = (
    "no state directory: what the host was like before could not be kept for the next "
    "start; see --state-dir"
)


class Means(msgspec.Struct, frozen=True):
    """By what a host is changed.

    Attributes:
        tree: The host.
        state: Where it is kept how all was before; None for nowhere.
        dry_run: Whether it is only said what would be changed.
        verifies: Whether to see what others have changed.
        pause: Seconds between two repairs of one file; 0 for no repairs.
        open_device: Opens the device of Speed Select, given the host.
    """

    tree: HostTree
    state: StateDir | None
    dry_run: bool = False
    verifies: bool = True
    pause: float = 0.0
    open_device: OpenDevice = open_isst


class HostEffects:
    """Works in a thread, one round after the other; what came of it is told here.

    Args:
        means: By what the host is changed.
        report: Is told what rounds do.

    Attributes:
        report: The same.
        is_waiting: Whether an isolated container had no cgroup yet in the last round.
    """

    def __init__(self, means: Means, report: HostReport) -> None:
        self.report = report
        self._means = means
        self._reader = FactsReader(means.tree)
        self._writer: HostWriter | None = None
        self._due: list[str] = []
        self._repairs = Repairs(self._due.extend, means.pause, _AT_ONCE)
        self._last = HostFacts(), NO_PLAN
        self._failed: frozenset[str] = frozenset()
        # Who was told to stop does not wait for a thread that began before.
        self._lock = threading.Lock()
        self._is_over = False
        self.is_waiting = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is to be tried again."""
        return not (self.report.why_not or self.report.failing)

    async def follow(self, wanted: Wanted, *, looks: bool = False) -> None:
        """Have the host as wanted.

        Args:
            wanted: What the policy wants now.
            looks: Whether to see first what others have changed, and which
                interrupts have come.
        """
        if self._means.state is None and not self._means.dry_run:
            self.report.stopped("" if wanted.use.is_idle else _NO_STATE)
            return
        try:
            found = await asyncio.to_thread(self._round, wanted, looks=looks)
        except HostError as error:
            self.report.stopped(str(error))
            return
        self.report.stopped("")
        self.report.done(found)

    def close(self, patience: float = PATIENCE) -> None:
        """Set everything back, if that takes no longer than *patience* seconds."""
        # No pool: it would be waited for, however long the kernel takes.
        thread = threading.Thread(target=self._restore, name="host", daemon=True)
        thread.start()
        thread.join(patience)
        if thread.is_alive():
            log.error("host.not-restored", why="it takes too long", after=patience)

    def _round(self, wanted: Wanted, *, looks: bool) -> Round:
        with self._lock:
            if self._is_over:
                return self.report.last
            writer = self._opened()
            if writer is not None:
                writer.follow(wanted.machine)
                if wanted.use.is_idle and writer.is_idle:
                    self._last = HostFacts(), NO_PLAN
                    return Round(looked=looks)
            facts = self._reader.read(wanted, writer, afresh=looks)
            plan = plan_of(wanted.use, wanted.classes, facts)
            waiting = _waiting(wanted, facts)
            self.is_waiting = bool(waiting)
            if writer is None:
                return self._told(plan)
            return self._written(writer, plan, facts, wanted, looks=looks)

    def _opened(self) -> HostWriter | None:
        state = self._means.state
        if self._writer is None and state is not None and not self._means.dry_run:
            self._writer = HostWriter(self._means.tree, state, self._means.open_device)
        return self._writer

    def _told(self, plan: HostPlan) -> Round:
        """Say what a plan would write."""
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
        verifies = looks and self._means.verifies
        drifts = self._drifts(writer, plan) if verifies else ()
        given_up = self._repair(plan.files, drifts) if verifies else ()
        is_new = looks or plan.placement != self._last[1].placement
        again = frozenset(self._due)
        self._due.clear()
        report = writer.apply(plan, facts, again, tells=is_new)
        in_vain = self._reader.tell_in_vain(facts)
        self._last = facts, plan
        self._failed = frozenset(one.path for one in report.failed)
        seen = {path: text for path, text in writer.seen.items() if path in plan.files}
        left = (one for one in drifts if one.path not in again)
        seen |= {one.path: one.found or "" for one in left}
        told = writer.told if moves_interrupts(wanted.use) else Round().told
        return Round(
            plan,
            facts,
            report,
            looked=verifies,
            drifts=drifts,
            given_up=given_up,
            refused=writer.refused,
            told=told,
            seen=seen,
            waiting=_waiting(wanted, facts),
            in_vain=in_vain,
        )

    def _drifts(self, writer: HostWriter, plan: HostPlan) -> tuple[Drift, ...]:
        """Return what others changed of what is wanted now as before."""
        facts, last = self._last
        is_balanced = self._reader.irqbalance is not None
        found = writer.look(last, facts, is_balanced=is_balanced)
        return tuple(
            one
            for one in found
            if one.path not in self._failed
            and last.files.get(one.path) == plan.files.get(one.path)
            and (one.path in plan.files or last.punits == plan.punits)
        )

    def _repair(
        self, paths: Iterable[str], drifts: tuple[Drift, ...]
    ) -> tuple[str, ...]:
        """Note what is to be written again; return what is left alone from now on."""
        if not self._means.pause:
            return ()
        drifting, now = {one.path for one in drifts}, monotonic()
        for path in paths:
            if path not in drifting:
                self._repairs.well(path, now)
        given_up, _ = self._repairs.repair(sorted(drifting), now)
        return given_up

    def _restore(self) -> None:
        self._is_over = True
        with self._lock:
            if self._writer is None or self._writer.is_idle:
                return
            with suppress(HostError):
                report = self._writer.restore_all()
                log.info("host.restored", files=len(report.restored))
                for one in report.failed:
                    log.error("host.not-restored", why=str(one))


def _waiting(wanted: Wanted, facts: HostFacts) -> frozenset[str]:
    """Return the isolated containers without a cgroup that was to be set."""
    wishing = {
        one.container for one in wanted.use.isolated if one.wish.is_about_cgroups
    }
    return frozenset(wishing - {one.container for _, one in facts.cgroups})
