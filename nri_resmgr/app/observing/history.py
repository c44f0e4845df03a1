"""Recent events, and the decisions on each container, for the control socket."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice, takewhile
from typing import Final

import msgspec

from nri_resmgr.app.observers.after_reply import Steps
from nri_resmgr.app.observers.event_kinds import EventKind
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.app.observing.decision_log import EVENT_NAMES
from nri_resmgr.app.observing.refusal_counts import RefusalCounts
from nri_resmgr.app.observing.refusal_log import REFUSED
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import PinUpdate, Reason
from nri_resmgr.policy.events import Event
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import ResmgrError

# Rows, reasons and updates take 100 to 200 bytes each: 4 MB at most. On a node with
# 500 containers in a shared pool each creation may update all others: then 40 rows.
MAX_WEIGHT: Final = 20_000

MAX_CHANGES: Final = 32
"""Decisions kept for one container: the first one and the last ones."""

MAX_REMOVED: Final = 256
"""Removed containers that can still be queried."""

_SYNCHRONIZED: Final = "node.synchronized"
_POD_PLACED: Final = "pod.placed"
_INEFFECTIVE: Final = "annotation.ineffective"

# These containers do not exist.
_OF_NO_CONTAINER: Final = frozenset(
    (
        *(Rule.PLACE_RESERVED, Rule.PLACE_RETURNED),
        *(Rule.CLAIM_PREPARED, Rule.CLAIM_RETURNED),
    )
)

_SECOND: Final = 10**9  # nanoseconds


class Row(msgspec.Struct, frozen=True):
    """An event.

    Attributes:
        number: Counts from 1 without gaps.
        time: UNIX nanoseconds.
        kind: Its name: ``container.placed``.
        reasons: The reasons of a decision, one per container.
        updates: Updates of other containers in the same decision.
        title: ``namespace/pod/container``, where there are no reasons.
        why: A sentence, where there is one.
        word: The kind of a refusal, configuration or drift.
        pod_uid: Kubernetes' id of the pod whose request was refused.
    """

    number: int
    time: int
    kind: EventKind
    reasons: tuple[Reason, ...] = ()
    updates: tuple[PinUpdate, ...] = ()
    title: str = ""
    why: str = ""
    word: str = ""
    pod_uid: str = ""


class ContainerChange(msgspec.Struct, frozen=True):
    """The part of a row about one container."""

    row: Row
    reason: Reason


class History(DecisionObserver):
    """A ring of rows, and for every container the decisions on it.

    Decisions on a container outlast the ring. All memory is bounded.

    Args:
        max_weight: The most rows, reasons and updates in the ring, in sum.
        now: Returns the time, UNIX nanoseconds.
    """

    def __init__(
        self,
        max_weight: int = MAX_WEIGHT,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._max_weight = max_weight
        self._now = now
        self._rows: deque[Row] = deque()
        self._weight = 0
        self._last = 0
        self._changes: dict[str, list[ContainerChange]] = {}
        self._removed: dict[str, list[ContainerChange]] = {}
        self._refusals = RefusalCounts()
        self._refused: dict[tuple[str, str], int] = {}  # rows by title and sentence
        self._repeats: dict[int, int] = {}  # by row
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def last(self) -> int:
        """The number of the newest row; 0 before there is any."""
        return self._last

    @property
    def first(self) -> int:
        """The number of the oldest row in the ring."""
        return self._rows[0].number if self._rows else self._last + 1

    @property
    def followers(self) -> int:
        """The number of clients that wait for the next row."""
        return len(self._waiting)

    def since(self, number: int, limit: int) -> tuple[Row, ...]:
        """Return up to *limit* rows after *number*, oldest first."""
        start = max(number + 1 - self.first, 0)
        return tuple(islice(self._rows, start, start + limit))

    def recent(self, seconds: float) -> Iterator[Row]:
        """Yield the rows of the last seconds, newest first."""
        begin = self._now() - int(seconds * _SECOND)
        return takewhile(lambda row: row.time >= begin, reversed(self._rows))

    def changes_of(self, container: str) -> tuple[ContainerChange, ...]:
        """Return the decisions on a container, oldest first."""
        return tuple(self._changes.get(container) or self._removed.get(container) or ())

    def updates_of(self, container: str) -> tuple[tuple[Row, PinUpdate], ...]:
        """Return its updates caused by other containers, as far as rows are kept."""
        return tuple(
            (row, update)
            for row in self._rows
            for update in row.updates
            if update.container == container
        )

    def removed(self) -> Iterator[ContainerChange]:
        """Yield the last decision on each removed container, latest first."""
        return (changes[-1] for changes in reversed(self._removed.values()))

    def rows_of_kind(self, kind: EventKind) -> tuple[Row, ...]:
        """Return the rows of a kind, oldest first."""
        return tuple(row for row in self._rows if row.kind == kind)

    def times(self, row: Row) -> int:
        """Return how often there was the same refusal as in a row."""
        return self._repeats.get(row.number, 1)

    async def more(self, number: int) -> None:
        """Wait until there is a row after *number*."""
        while self._last <= number:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            finally:
                # It is still there if this task was cancelled: the client disconnected.
                if waiter in self._waiting:
                    self._waiting.remove(waiter)

    def decided(self, event: Event, decision: PolicyDecision) -> Steps | None:
        """Keep the reasons and updates, but not the state, which is large."""
        self._refusals.decided(event)
        reasons, updates = decision.reasons, decision.updates
        if len(reasons) == 1 and reasons[0].rule is Rule.UNKNOWN_CONTAINER:
            reasons = ()
        kind = EVENT_NAMES[type(event)]
        if not reasons and not updates and kind != _SYNCHRONIZED:
            return None
        row = self._add(Row(self._last + 1, self._now(), kind, reasons, updates))
        steps = self._keep(row, decision.state.ledger.entries)
        if kind == _SYNCHRONIZED:
            return steps
        for _ in steps:
            pass
        return None

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        """Keep the sentence; the error itself would keep other objects alive.

        An equal refusal is only counted, as long as the first one is kept.
        """
        title, why = subject.title, str(error)
        times = self._refusals.add(title, why)
        number = self._refused.get((title, why), 0)
        if times > 1 and number >= self.first:
            self._repeats[number] = times
            return
        self.note(REFUSED, title, why, type(error).__name__, subject.pod_uid)
        self._refused[title, why] = self._last

    def ineffective(self, title: str, why: str) -> None:
        """Keep the sentence."""
        self.note(_INEFFECTIVE, title, why)

    def configured(self, config: PolicyConfig) -> None:
        """Keep the kind of the policy."""
        self.note("configuration.accepted", word=config.kind)

    def note(
        self,
        kind: EventKind,
        title: str = "",
        why: str = "",
        word: str = "",
        pod_uid: str = "",
    ) -> None:
        """Note an event that is no decision: a session, drift, a rejected document."""
        row = Row(self._last + 1, self._now(), kind, (), (), title, why, word, pod_uid)
        self._add(row)

    def _add(self, row: Row) -> Row:
        self._last = row.number
        self._rows.append(row)
        self._weight += _weight_of(row)
        while self._weight > self._max_weight and len(self._rows) > 1:
            self._drop_oldest()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                if not one.done():
                    one.set_result(None)
        return row

    def _drop_oldest(self) -> None:
        gone = self._rows.popleft()
        self._weight -= _weight_of(gone)
        self._repeats.pop(gone.number, None)
        if self._refused.get((gone.title, gone.why)) == gone.number:
            del self._refused[gone.title, gone.why]

    def _keep(self, row: Row, present: Collection[str]) -> Iterator[None]:
        # The first reason is about the pod.
        about = row.reasons[1:] if row.kind == _POD_PLACED else row.reasons
        for reason in about:
            if reason.rule in _OF_NO_CONTAINER:
                continue
            self._add_change(
                ContainerChange(row, reason), is_present=reason.container in present
            )
            yield
        # A creation can replace a container of the same name without a reason for it.
        if len(self._changes) > len(present):
            self._remove(sorted(self._changes.keys() - set(present)))

    def _add_change(self, change: ContainerChange, *, is_present: bool) -> None:
        container = change.reason.container
        changes = self._changes.setdefault(container, [])
        changes.append(change)
        if len(changes) > MAX_CHANGES:
            del changes[1]  # the first one is its creation: always kept
        if not is_present:
            self._remove((container,))

    def _remove(self, containers: Iterable[str]) -> None:
        for container in containers:
            self._removed.pop(container, None)
            self._removed[container] = self._changes.pop(container)
            if len(self._removed) > MAX_REMOVED:
                del self._removed[next(iter(self._removed))]


def _weight_of(row: Row) -> int:
    return 1 + len(row.reasons) + len(row.updates)
