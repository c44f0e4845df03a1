"""Looks now and then whether containers have what was decided, and mends that."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Protocol

import msgspec

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.background.repairs import Repairs
from nri_resmgr.app.observing.history import History, Row
from nri_resmgr.app.verification.drift import NOT_PINNED, PENDING, Finding, Verdict
from nri_resmgr.app.verification.inspection import Inspected, Inspection
from nri_resmgr.app.verification.report import DriftReport
from nri_resmgr.host.container_cgroups import CgroupReference
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine

log = Logger(__name__)

GRACE: Final = 2.0
"""Seconds after which a single thing that was told has to be in force."""

# Runtimes update one container after the other: containerd takes some 12 ms each.
_PER_UPDATE: Final = 0.05  # seconds

# More than a thousand updates at once are not waited for any longer.
_LONGEST: Final = 60.0  # seconds

# Looked at in one go, some 2 ms, before requests may have the interpreter again.
_AT_ONCE: Final = 50


class Subject(Protocol):
    """What is verified; a `ResourcePolicy` is one."""

    @property
    def machine(self) -> Machine:
        """The machine in force."""

    @property
    def policy(self) -> ViewedPolicy[Any]:
        """The policy in force."""

    @property
    def state(self) -> Any:
        """What it knows and has granted."""

    def send_pins(self, containers: Iterable[str]) -> None:
        """Send the pins of containers to the runtime."""

    def pending_pins(self) -> frozenset[str]:
        """Return the containers whose pins are yet to be taken by the runtime."""


class Rhythm(msgspec.Struct, frozen=True):
    """When to look, and whether to mend.

    Attributes:
        interval: Seconds between two rounds.
        repairs: Whether to update who differs.
        grace: Seconds for something that was told to come into force.
    """

    interval: float
    repairs: bool = True
    grace: float = GRACE


class Verification:
    """Compares, reports and repairs, in rounds.

    A round looks at everybody once, and a second time at those who differ: only what
    differs from the same decision both times counts. Whoever was told something of
    late, or is yet to be told it, is left for the next round.

    Args:
        subject: Whose decisions they are.
        inspection: Looks at cgroups.
        history: Knows who was told something of late.
        report: Is told what rounds find.
        rhythm: When to look.

    Attributes:
        rounds: How many there were.
        seconds: How long the last one read and compared.
        ended: When it ended, UNIX nanoseconds; 0 before the first.
        repairs: Who was updated how often.
        rhythm: When it looks.
    """

    def __init__(
        self,
        subject: Subject,
        inspection: Inspection,
        history: History,
        report: DriftReport,
        rhythm: Rhythm,
    ) -> None:
        self._subject = subject
        self._inspection = inspection
        self._history = history
        self._report = report
        self.rhythm = rhythm
        self.repairs = Repairs(subject.send_pins, rhythm.interval)
        self.rounds = 0
        self.seconds = 0.0
        self.ended = 0
        self._findings: Mapping[str, Finding] = {}
        self._wake = asyncio.Event()

    def finding_of(self, container: str) -> Finding:
        """Say what the last look at a container showed."""
        return self._findings.get(container, PENDING)

    def counts(self) -> Mapping[Verdict, int]:
        """Count containers by what the last look at them showed."""
        return Counter(finding.verdict for finding in self._findings.values())

    def wake(self) -> None:
        """Begin a round now, rather than when its time comes."""
        self._wake.set()

    async def run(self, is_in_sync: Callable[[], bool]) -> None:
        """Begin a round when it is time; never returns.

        Args:
            is_in_sync: Whether the runtime has told what runs. What it does without
                us is not known, and nobody would take an update.
        """
        while True:
            goes_on = is_in_sync() and await self.round()
            rhythm = self.rhythm
            delay = rhythm.grace if goes_on else until_tick(rhythm.interval)
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def round(self) -> bool:
        """Look at everybody; return whether more is to be done soon."""
        self.seconds = 0.0
        findings = await self._look(None)
        suspects = {key: one for key, one in findings.items() if one.differences}
        if suspects:
            await asyncio.sleep(self.rhythm.grace)
            again = await self._look(suspects.keys())
            for key, before in suspects.items():
                findings[key] = _confirmed(before, again.get(key, PENDING))
        self.rounds += 1
        self.ended = time.time_ns()
        goes_on = self._conclude(findings)
        if log.is_debugged:
            verdicts = {word.value: count for word, count in self.counts().items()}
            log.debug("verification.round", seconds=self.seconds, verdicts=verdicts)
        return goes_on

    def _conclude(self, findings: dict[str, Finding]) -> bool:
        entries = self._subject.state.ledger.entries
        for key in findings.keys() - entries.keys():
            del findings[key]
        self._findings = findings
        for keeper in (self._report, self.repairs, self._inspection):
            keeper.keep_only(entries.keys())
        now = time.monotonic()
        for key, finding in findings.items():
            self._report.found(key, entries[key].spec.title, finding)
            if finding.verdict is Verdict.AS_DECIDED:
                self.repairs.well(key, now)
        return self.rhythm.repairs and self._repair(now)

    def _repair(self, now: float) -> bool:
        entries = self._subject.state.ledger.entries
        waiting = self._subject.pending_pins()
        drifted = [
            key
            for key, one in self._findings.items()
            if one.verdict is Verdict.DRIFTED and key not in waiting
        ]
        lost, goes_on = self.repairs.repair(drifted, now)
        for key in lost:
            attempts = self.repairs.attempts_of(key)
            self._report.gave_up(key, entries[key].spec.title, attempts)
        return goes_on

    async def _look(self, only: Collection[str] | None) -> dict[str, Finding]:
        """Look at some, whose cgroups are found anew, or at all."""
        machine, findings, due = self._subject.machine, dict[str, Finding](), []
        for key, found in self._to_look_at(only):
            if isinstance(found, Finding):
                findings[key] = found
            else:
                due.append(found)
        rest = iter(due)
        while some := tuple(islice(rest, _AT_ONCE)):
            begun = time.perf_counter()
            findings |= await asyncio.to_thread(
                self._inspection.look, some, machine, afresh=only is not None
            )
            self.seconds += time.perf_counter() - begun
        return findings

    def _to_look_at(
        self, only: Collection[str] | None
    ) -> Iterator[tuple[str, Finding | Inspected]]:
        state = self._subject.state
        pins = self._subject.policy.pins(state)
        late = self._subject.pending_pins() | self._told_of_late()
        for key, entry in state.ledger.entries.items():
            if only is not None and key not in only:
                continue
            pin = pins.get(key)
            if not pin:
                yield key, NOT_PINNED
            elif key in late or (
                pin is not entry.last_sent and pin.since(entry.last_sent)
            ):
                yield key, PENDING
            else:
                yield key, Inspected(_cgroup_reference(entry.spec), pin)

    def _told_of_late(self) -> set[str]:
        now, late = time.time_ns(), set[str]()
        for row in self._history.recent(_LONGEST):
            patience = self.rhythm.grace + _PER_UPDATE * len(row.updates)
            if abs(now - row.time) < patience * 1e9:  # clocks can be set back
                late.update(_told_by(row))
        return late


def _confirmed(before: Finding, now: Finding) -> Finding:
    """Believe what was seen twice, against the same decision."""
    seen = {(one.kind, one.wanted) for one in before.differences}
    is_new = all((one.kind, one.wanted) not in seen for one in now.differences)
    return PENDING if now.differences and is_new else now


def _cgroup_reference(spec: ContainerSpec) -> CgroupReference:
    return CgroupReference(spec.id, spec.cgroup, spec.pid)


def _told_by(row: Row) -> Iterator[str]:
    yield from (update.container for update in row.updates)
    if row.kind != "node.synchronized":  # its reasons are of all that run
        yield from (reason.container for reason in row.reasons)
