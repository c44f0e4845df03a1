"""Report of changes to the host: log lines, events and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from nri_resmgr.app.host_settings.plan import NO_PLAN, HostFacts, HostPlan
from nri_resmgr.app.observers.observer import EventLog
from nri_resmgr.host.irqbalance import IrqbalanceResult
from nri_resmgr.host.knobs.report import KnobDrift, KnobFailure, KnobReport
from nri_resmgr.log import Logger

log = Logger(__name__)

_One = TypeVar("_One", KnobDrift, KnobFailure)

_BLAME: Final = (
    "it may be tuned, a power daemon, irqbalance, another plugin, or an administrator"
)


class Round(msgspec.Struct, frozen=True):
    """Outcome of one step.

    Attributes:
        facts: The facts that the plan was made from.
        looked: Whether the host was compared with the plan before.
        drifts: Files that differed from it.
        abandoned: Paths that are not written any more, because others keep changing
            them.
        refused: Interrupts that cannot be moved, and why.
        irqbalance: Outcome of the requests to irqbalance.
        seen: Contents of the plan's files when they were last read.
        waiting: Ids of isolated containers that have no cgroup yet.
        ineffective: Why isolation from load balancing has no effect, by container id.
    """

    plan: HostPlan = NO_PLAN
    facts: HostFacts = HostFacts()
    report: KnobReport = KnobReport()
    looked: bool = False
    drifts: tuple[KnobDrift, ...] = ()
    abandoned: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}
    irqbalance: IrqbalanceResult = IrqbalanceResult()
    seen: Mapping[str, str] = {}
    waiting: frozenset[str] = frozenset()
    ineffective: Mapping[str, str] = {}


class HostReport:
    """Logs what has changed since the last step, and counts.

    Attributes:
        drift: Number of files that others have changed.
        failing: Files that could not be written in the last step, by path.
        drifting: Files that others have changed, by path.
        abandoned: Paths that are not written any more.
        why_not: Why no settings are applied; empty while they are.
    """

    def __init__(self, history: EventLog) -> None:
        self._history = history
        self._shared: object = ()
        self._unplaced: object = ()
        self._unsent = ""
        self.last = Round()
        self.written = self.restored = self.failures = self.drift = 0
        self.failing: dict[str, KnobFailure] = {}
        self.drifting: dict[str, KnobDrift] = {}
        self.abandoned: set[str] = set()
        self.why_not = ""

    def stopped(self, why: str) -> None:
        """Log once why no settings are applied; empty when they are again."""
        if why and why != self.why_not:
            after = "containers are served; CPU classes and interrupts stay as they are"
            log.error("host.not-applied", why=why, meanwhile=after)
        self.why_not = why

    def done(self, found: Round) -> None:
        """Log and count the outcome of a step."""
        report = found.report
        self.last = found
        self.written += len(report.written)
        self.restored += len(report.restored)
        self.failures += len(report.failed)
        if report.written or report.restored:
            log.info(
                "host.changed",
                written=len(report.written),
                restored=len(report.restored),
            )
        self._failed(report.failed)
        if found.looked:
            self._drifted(found.drifts)
        self._abandoned(found)
        self._limits(found)

    def _failed(self, failed: Iterable[KnobFailure]) -> None:
        now = {one.path: one for one in failed}
        new = [one for path, one in now.items() if self.failing.get(path) != one]
        for first, more in _grouped(new):
            log.warning("host.not-written", why=str(first), **more)
            self._history.note("host.not-written", first.path, str(first))
        self.failing = now

    def _drifted(self, drifts: Iterable[KnobDrift]) -> None:
        now = {one.path: one for one in drifts}
        new = [one for path, one in now.items() if self.drifting.get(path) != one]
        self.drift += len(new)
        for first, more in _grouped(new):
            why = (
                f"{first.path} has {first.found!r} instead of {first.expected!r}: "
                f"another program wrote it; {_BLAME}"
            )
            log.warning("host.drifted", why=why, **more)
            self._history.note("host.drifted", first.path, why)
        self.abandoned &= now.keys()
        self.drifting = now

    def _abandoned(self, found: Round) -> None:
        self.abandoned.update(found.abandoned)
        if found.abandoned:
            why = "others keep changing them, so they are not written any more"
            paths = list(found.abandoned)
            log.error("host.abandoned", paths=paths, why=why)
            self._history.note("host.abandoned", paths[0], why)

    def _limits(self, found: Round) -> None:
        plan = found.plan
        if plan.shared != self._shared:
            self._shared = plan.shared
            for one in plan.shared:
                names = [name or "none" for name in one.classes]
                log.warning("host.shared-frequency", path=one.folder, classes=names)
        if plan.placement.unplaced != self._unplaced:
            self._unplaced = plan.placement.unplaced
            if numbers := plan.placement.unplaced:
                why = "no CPU would be left for them"
                log.warning("interrupts.not-placed", numbers=list(numbers), why=why)
        why = found.irqbalance.why
        unsent = list(found.irqbalance.unbanned)
        if (why or unsent) and f"{why}{unsent}" != self._unsent:
            why = why or "a request has room for about 100 interrupts"
            log.warning("irqbalance.not-updated", why=why, interrupts=unsent)
        self._unsent = f"{found.irqbalance.why}{unsent}" if why or unsent else ""


def _grouped(new: Iterable[_One]) -> Iterator[tuple[_One, dict[str, int]]]:
    """Yield one file for each name and outcome, with the number of others like it.

    A machine has hundreds of CPUs, and what fails for one mostly fails for all.
    """
    first: dict[object, _One] = {}
    counts = Counter[object]()
    for one in new:
        _, *outcome = msgspec.structs.astuple(one)
        key: object = (one.path.rpartition("/")[2], *outcome)
        first.setdefault(key, one)
        counts[key] += 1
    for key, one in first.items():
        yield one, {"more": counts[key] - 1} if counts[key] > 1 else {}
