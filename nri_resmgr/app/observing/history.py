"""What happened of late, and each container's story: kept as it is, told on demand."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import Any, Final

import msgspec

from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.observing.decision_log import EVENT_NAMES
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import Decision, PinUpdate, Reason, Rule
from nri_resmgr.policy.events import Event
from nri_resmgr.values import ResmgrError

# A row is its number, what it is about and who else was told: 100 to 200 bytes each,
# so 4 MB at most. On a node with 500 containers that share, each new one can change
# all others: then it is the last 40 of them.
MAX_WEIGHT: Final = 20_000

MAX_CHANGES: Final = 32
"""Of one container that are kept: the first, and the last ones."""

MAX_GONE: Final = 256
"""Containers whose story is kept when they are gone."""


class Row(msgspec.Struct, frozen=True):
    """Something that happened.

    Attributes:
        number: Counts from 1; no two rows share one, and none is left out.
        time: When, UNIX nanoseconds.
        kind: What, in the words of the log: ``container.placed``.
        reasons: What was decided, one per container that it is about.
        updates: What other containers were told with it.
        title: Who it is about where there are no reasons: ``namespace/pod/container``.
        why: A sentence, where there is one.
        word: The kind of the refusal, of the configuration, of the drift.
    """

    number: int
    time: int
    kind: str
    reasons: tuple[Reason, ...] = ()
    updates: tuple[PinUpdate, ...] = ()
    title: str = ""
    why: str = ""
    word: str = ""


class Change(msgspec.Struct, frozen=True):
    """What a row says of one container."""

    row: Row
    reason: Reason


class History(DecisionObserver):
    """A ring of rows, and for every container the rows that it is in.

    Rows that fall out of the ring live on in stories. Nothing here grows with time.

    Args:
        max_weight: Rows, containers in them and updates that are kept, in sum.
        now: Tells the time, UNIX nanoseconds.
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
        self._stories: dict[str, list[Change]] = {}
        self._gone: dict[str, list[Change]] = {}
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def last(self) -> int:
        """The number of the newest row; 0 before there is any."""
        return self._last

    @property
    def first(self) -> int:
        """The number of the oldest row that is still here."""
        return self._rows[0].number if self._rows else self._last + 1

    @property
    def followers(self) -> int:
        """How many wait for the next row."""
        return len(self._waiting)

    def since(self, number: int, limit: int) -> tuple[Row, ...]:
        """Return the first rows after *number* that are still here."""
        start = max(number + 1 - self.first, 0)
        return tuple(islice(self._rows, start, start + limit))

    def lately(self, seconds: float) -> Iterator[Row]:
        """Yield the rows of the last seconds that are still here, newest first."""
        begin = self._now() - int(seconds * _SECOND)
        return takewhile(lambda row: row.time >= begin, reversed(self._rows))

    def story_of(self, container: str) -> tuple[Change, ...]:
        """Return what was decided on a container, oldest first."""
        story = self._stories.get(container) or self._gone.get(container)
        return tuple(story or ())

    def updates_of(self, container: str) -> tuple[tuple[Row, PinUpdate], ...]:
        """Return what it was told because of others, as far as rows are kept."""
        return tuple(
            (row, update)
            for row in self._rows
            for update in row.updates
            if update.container == container
        )

    def gone(self) -> Iterator[Change]:
        """Yield the last that is known of those who left, latest first."""
        return (story[-1] for story in reversed(self._gone.values()))

    def rows_of_kind(self, kind: str) -> tuple[Row, ...]:
        """Return the rows of a kind that are still here, oldest first."""
        return tuple(row for row in self._rows if row.kind == kind)

    async def more(self, number: int) -> None:
        """Wait until there is a row after *number*."""
        while self._last <= number:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)

    def decided(self, event: Event, decision: Decision[Any]) -> None:
        """Keep the reasons; what is left of the state is not ours to keep."""
        reasons, updates = decision.reasons, decision.updates
        if len(reasons) == 1 and reasons[0].rule is Rule.UNKNOWN_CONTAINER:
            reasons = ()
        kind = EVENT_NAMES[type(event)]
        if not reasons and not updates and kind != _SYNCHRONIZED:
            return
        row = self._add(Row(self._last + 1, self._now(), kind, reasons, updates))
        if kind == _POD_PLACED:  # its reason is about a pod
            return
        present = decision.state.ledger.entries
        for reason in reasons:
            self._tell(Change(row, reason), here=reason.container in present)
        # A successor's creation says nothing of those who had its name before.
        if len(self._stories) > len(present):
            self._part_with(sorted(self._stories.keys() - present.keys()))

    def refused(self, title: str, error: ResmgrError) -> None:
        """Keep the sentence; the error itself holds on to too much."""
        self.note(REFUSED, title, str(error), type(error).__name__)

    def configured(self, config: PolicyConfig) -> None:
        """Keep which policy it was."""
        self.note("configuration.accepted", word=config.kind)

    def note(self, kind: str, title: str = "", why: str = "", word: str = "") -> None:
        """Keep something else: a session, drift, a configuration that failed."""
        row = Row(self._last + 1, self._now(), kind, title=title, why=why, word=word)
        self._add(row)

    def _add(self, row: Row) -> Row:
        self._last = row.number
        self._rows.append(row)
        self._weight += _weight_of(row)
        while self._weight > self._max_weight and len(self._rows) > 1:
            self._weight -= _weight_of(self._rows.popleft())
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                if not one.done():
                    one.set_result(None)
        return row

    def _tell(self, change: Change, *, here: bool) -> None:
        container = change.reason.container
        story = self._stories.setdefault(container, [])
        story.append(change)
        if len(story) > MAX_CHANGES:
            del story[1]  # the first says how it came here
        if not here:
            self._part_with((container,))

    def _part_with(self, containers: Iterable[str]) -> None:
        for container in containers:
            self._gone.pop(container, None)
            self._gone[container] = self._stories.pop(container)
            if len(self._gone) > MAX_GONE:
                del self._gone[next(iter(self._gone))]


REFUSED: Final = "container.refused"
_SECOND: Final = 10**9  # nanoseconds
_SYNCHRONIZED: Final = "node.synchronized"
_POD_PLACED: Final = "pod.placed"


def _weight_of(row: Row) -> int:
    return 1 + len(row.reasons) + len(row.updates)
