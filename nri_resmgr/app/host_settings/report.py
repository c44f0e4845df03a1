"""What was done to a host, as lines of the log, as events and in counters."""

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
    "it may be tuned, a power daemon, irqbalance, another plugin, or somebody by hand"
)


class Round(msgspec.Struct, frozen=True):
    """What one round was about, and what it did.

    Attributes:
        plan: What the host should be like.
        facts: What that was made from.
        report: What was written.
        looked: Whether the host was compared with what was planned before.
        drifts: What differed.
        given_up: Paths that are left as others write them, from now on.
        refused: Interrupts that cannot be moved, and why.
        told: What became of telling irqbalance.
        seen: What files of the plan had in them when we looked last.
        waiting: Isolated containers, by id, that have no cgroup to set yet.
        in_vain: Why CPUs of isolated containers are balanced all the same, by id.
    """

    plan: HostPlan = NO_PLAN
    facts: HostFacts = HostFacts()
    report: KnobReport = KnobReport()
    looked: bool = False
    drifts: tuple[KnobDrift, ...] = ()
    abandoned: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}
    told: IrqbalanceResult = IrqbalanceResult()
    seen: Mapping[str, str] = {}
    waiting: frozenset[str] = frozenset()
    ineffective: Mapping[str, str] = {}


class HostReport:
    """Tells what has changed since it was told last, and counts.

    Args:
        history: Where events are noted.

    Attributes:
        last: The last round.
        written: Files that were written so far.
        restored: Files that were set back so far.
        failures: Writes that failed so far.
        drift: Files that others have changed so far.
        failing: What is not as it should be, by path.
        drifting: What others have changed, by path.
        given_up: Paths that are left as others write them.
        why_not: Why the host is left as it is; empty where it follows.
    """

    def __init__(self, history: EventLog) -> None:
        self._history = history
        self._shared: object = ()
        self._unplaced: object = ()
        self._untold = ""
        self.last = Round()
        self.written = self.restored = self.failures = self.drift = 0
        self.failing: dict[str, KnobFailure] = {}
        self.drifting: dict[str, KnobDrift] = {}
        self.abandoned: set[str] = set()
        self.why_not = ""

    def stopped(self, why: str) -> None:
        """Tell, once, why the host is left as it is; empty for no more."""
        if why and why != self.why_not:
            after = "containers are served; CPU classes and interrupts stay as they are"
            log.error("host.not-applied", why=why, meanwhile=after)
        self.why_not = why

    def done(self, found: Round) -> None:
        """Take what a round did."""
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
        self._gave_up(found)
        self._limits(found)

    def _failed(self, failed: Iterable[KnobFailure]) -> None:
        now = {one.path: one for one in failed}
        news = [one for path, one in now.items() if self.failing.get(path) != one]
        for first, more in _alike(news):
            log.warning("host.not-written", why=str(first), **more)
            self._history.note("host.not-written", first.path, str(first))
        self.failing = now

    def _drifted(self, drifts: Iterable[KnobDrift]) -> None:
        now = {one.path: one for one in drifts}
        news = [one for path, one in now.items() if self.drifting.get(path) != one]
        self.drift += len(news)
        for first, more in _alike(news):
            why = (
                f"{first.path} has {first.found!r} instead of {first.expected!r}: "
                f"somebody else wrote it; {_BLAME}"
            )
            log.warning("host.drifted", why=why, **more)
            self._history.note("host.drifted", first.path, why)
        self.abandoned &= now.keys()
        self.drifting = now

    def _gave_up(self, found: Round) -> None:
        self.abandoned.update(found.abandoned)
        if found.abandoned:
            why = "others write them again and again, so they are left like that"
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
        why = found.told.why
        untold = list(found.told.unbanned)
        if (why or untold) and f"{why}{untold}" != self._untold:
            why = why or "its requests hold no more"
            log.warning("irqbalance.not-updated", why=why, interrupts=untold)
        self._untold = f"{found.told.why}{untold}" if why or untold else ""


def _alike(news: Iterable[_One]) -> Iterator[tuple[_One, dict[str, int]]]:
    """Yield the first of files of one name with one fate, and how many more there are.

    A machine has hundreds of CPUs, and what goes wrong for one mostly does for all.
    """
    first: dict[object, _One] = {}
    counts = Counter[object]()
    for one in news:
        _, *fate = msgspec.structs.astuple(one)
        key: object = (one.path.rpartition("/")[2], *fate)
        first.setdefault(key, one)
        counts[key] += 1
    for key, one in first.items():
        yield one, {"more": counts[key] - 1} if counts[key] > 1 else {}
