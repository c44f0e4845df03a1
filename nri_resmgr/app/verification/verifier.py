"""Verifies periodically that containers have what was decided, and repairs drift."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from functools import partial
from itertools import islice
from typing import Final, Protocol, TypeVar

import msgspec

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.background.repairs import Repairs
from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.verification.drift import (
    NOT_PINNED,
    PENDING,
    Finding,
    Verdict,
    while_contested,
)
from nri_resmgr.app.verification.inspection import Inspected, Inspection
from nri_resmgr.app.verification.report import DriftReport
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.log import Logger

log = Logger(__name__)

T = TypeVar("T")

GRACE: Final = 2.0
"""Seconds after which a single update has to be in force."""

# Runtimes update one container after the other: containerd takes some 12 ms each.
_PER_UPDATE: Final = 0.05  # seconds

# Enough for a thousand updates at once.
_LONGEST: Final = 60.0  # seconds

# Containers that are inspected in one go, some 2 ms, or reported, 4 ms if all of them
# have drifted, before the interpreter is free for requests again.
_AT_ONCE: Final = 50


class VerifiedDelivery(Protocol):
    """Delivers the pins that are verified; a `PinDelivery` does."""

    def send(self, containers: Iterable[str]) -> None:
        """Deliver the present pins of containers."""

    def pending(self) -> frozenset[str]:
        """Return the containers whose pins are not in force yet."""

    def is_by_runtime(self, container: str) -> bool:
        """Return whether a container is updated by the runtime, not by its cgroup."""


class VerifiedPolicy(PolicyInForce, Protocol):
    """The policy in force, whose decisions are verified, and their delivery."""

    @property
    def delivery(self) -> VerifiedDelivery:
        """Delivers changed pins to running containers."""


class VerificationOptions(msgspec.Struct, frozen=True):
    """Times of verification, and whether to repair.

    Attributes:
        interval: Seconds between two rounds.
        repairs: Whether to update drifted containers.
        grace: Seconds after which an update has to be in force.
    """

    interval: float
    repairs: bool = True
    grace: float = GRACE


class Verification:
    """Compares, reports and repairs, in rounds.

    A round inspects all containers once, and those that differ a second time: only
    values that differ from the same decision both times count. Containers with a
    recent or pending update are left for the next round.

    Args:
        history: Knows which containers were updated recently.

    Attributes:
        is_contested: Returns whether CPUs of a container are overwritten all the time,
            and written again without a round.
        rounds: Number of rounds so far.
        seconds: Duration of reading and comparing in the last round.
        ended: End of the last round, UNIX nanoseconds; 0 before the first.
    """

    def __init__(
        self,
        verified: VerifiedPolicy,
        inspection: Inspection,
        history: History,
        report: DriftReport,
        options: VerificationOptions,
    ) -> None:
        self._verified = verified
        self._inspection = inspection
        self._history = history
        self._report = report
        self.options = options
        self.is_contested: Callable[[str], bool] = lambda _container: False
        # Cgroups are written in slices, between which requests pass.
        delivery = verified.delivery
        self.repairs = Repairs(
            delivery.send, options.interval, is_limited=delivery.is_by_runtime
        )
        self.rounds = 0
        self.seconds = 0.0
        self.ended = 0
        self._findings: Mapping[str, Finding] = {}
        self._wake = asyncio.Event()

    def finding_of(self, container: str) -> Finding:
        """Return the last finding of a container."""
        return self._findings.get(container, PENDING)

    def counts(self) -> Mapping[Verdict, int]:
        """Count containers by their last verdict."""
        return Counter(finding.verdict for finding in self._findings.values())

    def wake(self) -> None:
        """Start a round now, before the interval has passed."""
        self._wake.set()

    async def run(self, is_in_sync: Callable[[], bool]) -> None:
        """Run rounds at the interval; never returns.

        Args:
            is_in_sync: Whether the session is synchronized. Otherwise it is not known
                which containers run, and nothing would take an update.
        """
        while True:
            goes_on = is_in_sync() and await self.round()
            options = self.options
            delay = options.grace if goes_on else until_tick(options.interval)
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def round(self) -> bool:
        """Verify all containers; return whether repairs remain for the next round."""
        self.seconds = 0.0
        findings = await self._inspect(None)
        suspects = {key: one for key, one in findings.items() if one.differences}
        if suspects:
            await asyncio.sleep(self.options.grace)
            again = await self._inspect(suspects.keys())
            for key, before in suspects.items():
                findings[key] = _confirmed(before, again.get(key, PENDING))
        self.rounds += 1
        self.ended = time.time_ns()
        goes_on = await self._conclude(findings)
        if log.is_debugged:
            verdicts = {word.value: count for word, count in self.counts().items()}
            log.debug("verification.round", seconds=self.seconds, verdicts=verdicts)
        return goes_on

    async def _conclude(self, findings: dict[str, Finding]) -> bool:
        entries = self._verified.state.ledger.entries
        # Containers may have been removed during the round.
        for key in findings.keys() - entries.keys():
            del findings[key]
        for key in filter(self.is_contested, tuple(findings)):
            findings[key] = while_contested(findings[key])
        self._findings = findings
        for part in (self._report, self.repairs, self._inspection):
            part.keep_only(entries.keys())
        now = time.monotonic()
        async for key, finding in _between_requests(findings.items()):
            if (entry := self._verified.state.ledger.entries.get(key)) is not None:
                self._report.found(key, entry.spec.title, finding)
                if finding.verdict is Verdict.AS_DECIDED:
                    self.repairs.well(key, now)
        return self.options.repairs and self._repair(now)

    def _repair(self, now: float) -> bool:
        entries = self._verified.state.ledger.entries
        pending = self._verified.delivery.pending()
        drifted = [
            key
            for key, one in self._findings.items()
            if one.verdict is Verdict.DRIFTED and key in entries and key not in pending
        ]
        abandoned, goes_on = self.repairs.repair(drifted, now)
        for key in abandoned:
            attempts = self.repairs.attempts_of(key)
            self._report.abandoned(key, entries[key].spec.title, attempts)
        return goes_on

    async def _inspect(self, only: Collection[str] | None) -> dict[str, Finding]:
        """Inspect all containers, or some whose cgroups are searched again."""
        machine, findings, due = self._verified.machine, dict[str, Finding](), []
        async for key, found in _between_requests(self._to_inspect(only)):
            if isinstance(found, Finding):
                findings[key] = found
            else:
                due.append(found)
        rest = iter(due)
        while some := tuple(islice(rest, _AT_ONCE)):
            begun = time.perf_counter()
            findings |= await in_thread(
                partial(
                    self._inspection.inspect, some, machine, afresh=only is not None
                )
            )
            self.seconds += time.perf_counter() - begun
        return findings

    def _to_inspect(
        self, only: Collection[str] | None
    ) -> Iterator[tuple[str, Finding | Inspected]]:
        state = self._verified.state
        pins = self._verified.policy.pins(state)
        changing = self._verified.delivery.pending() | self._recently_updated()
        for key, entry in state.ledger.entries.items():
            if only is not None and key not in only:
                continue
            pin = pins.get(key)
            if not pin:
                yield key, NOT_PINNED
            elif key in changing or (
                pin is not entry.last_sent and pin.since(entry.last_sent)
            ):
                yield key, PENDING
            else:
                spec = entry.spec
                cgroup = CgroupReference(spec.id, spec.cgroup, spec.pid)
                yield key, Inspected(cgroup, pin)

    def _recently_updated(self) -> set[str]:
        now, recent = time.time_ns(), set[str]()
        for row in self._history.recent(_LONGEST):
            grace = self.options.grace + _PER_UPDATE * len(row.updates)
            if abs(now - row.time) < grace * 1e9:  # abs: clocks can be set back
                recent.update(update.container for update in row.updates)
                if row.kind != "node.synchronized":  # has reasons of all containers
                    recent.update(reason.container for reason in row.reasons)
        return recent


async def _between_requests(rows: Iterable[T]) -> AsyncIterator[T]:
    """Yield rows, with pauses in which requests are answered."""
    for number, row in enumerate(rows, 1):
        yield row
        if not number % _AT_ONCE:
            await asyncio.sleep(0)


def _confirmed(before: Finding, now: Finding) -> Finding:
    """Accept the second finding only if it differs from the same decision."""
    seen = {(one.kind, one.wanted) for one in before.differences}
    is_new = all((one.kind, one.wanted) not in seen for one in now.differences)
    return PENDING if now.differences and is_new else now
