"""Containers whose cgroups are to be written, or compared later."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import Final

# Other programs write CPUs and memory nodes of a container one after the other, and
# those of many containers. Containers share their CPUs until then.
_SOON: Final = 0.2  # seconds

_NEVER: Final = float("inf")


class WaitingPins:
    """Containers whose pins wait, in the order of the decisions, each with its age.

    A container is *changed* until its write begins, then *in flight*. It is *held*
    while nothing is to be written for it, because a partition will do. A *check* is a
    comparison that is due later; it is *unexpected* if nothing known has written.

    Args:
        check_after: Seconds from a write to its comparison.

    Attributes:
        is_idle: Whether nothing is changed or in flight.
    """

    def __init__(self, check_after: float) -> None:
        self._check_after = check_after
        self._changed: dict[str, float] = {}
        self._in_flight: dict[str, float] = {}
        self._held: dict[str, float] = {}
        self._checks: dict[str, float] = {}  # when it is due
        self._expected_until: dict[str, float] = {}  # writes of something known
        self._unexpected: set[str] = set()
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()  # a new one each time
        self.is_idle = True

    def __contains__(self, container: str) -> bool:
        return any(container in one for one in self._queues())

    @property
    def containers(self) -> frozenset[str]:
        """All containers whose pins wait."""
        return frozenset(key for one in self._queues() for key in one)

    @property
    def changed(self) -> tuple[str, ...]:
        """The changed containers, in the order of the decisions."""
        return tuple(self._changed)

    @property
    def changed_in_flight(self) -> Collection[str]:
        """The containers whose write has begun before their last decision."""
        return self._changed.keys() & self._in_flight.keys()

    @property
    def held(self) -> tuple[str, ...]:
        """The held containers."""
        return tuple(self._held)

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest one in seconds; 0 without any."""
        since = min((at for one in self._queues() for at in one.values()), default=None)
        return 0.0 if since is None else max(0.0, monotonic() - since)

    def seconds_of(self, container: str) -> float:
        """Return how long a container's pin has been waiting; 0 if it does not."""
        found = (one[container] for one in self._queues() if container in one)
        since = next(found, None)
        return 0.0 if since is None else max(0.0, monotonic() - since)

    def add(self, container: str) -> None:
        """Add a changed container; one that waits keeps its age."""
        self._changed.setdefault(container, self._held.pop(container, monotonic()))
        self.wake()

    def take(self, containers: Iterable[str]) -> None:
        """Note that changed containers are in flight."""
        for key in containers:
            self._in_flight[key] = self._changed.pop(key)

    def keep_changed(self, containers: Collection[str]) -> None:
        """Drop changed containers that are not among these."""
        for key in self._changed.keys() - set(containers):
            del self._changed[key]

    def landed(self, container: str) -> None:
        """Note that the write of a container has ended."""
        self._in_flight.pop(container, None)

    def hold(self, container: str) -> None:
        """Note that nothing was written: a partition will do."""
        since = self._in_flight.pop(container, monotonic())
        self._held[container] = since
        self.drop_check(container)

    def check_later(self, container: str, pause: float = 0.0) -> None:
        """Have a container compared: its cgroup may be written by something known.

        Args:
            container: Its id.
            pause: Seconds that have to pass at least.
        """
        self._checks[container] = monotonic() + max(self._check_after, pause)
        self._expected_until[container] = self._checks[container]
        self._unexpected.discard(container)
        self._wake.set()

    def check_soon(self, container: str, pause: float = 0.0) -> None:
        """Have a container compared: something may have written its cgroup.

        Args:
            container: Its id.
            pause: Seconds that have to pass at least.
        """
        now = monotonic()
        due = now + max(_SOON, pause)
        if self._checks.get(container, _NEVER) > due:
            self._checks[container] = due
            self._wake.set()
        if now >= self._expected_until.get(container, now):
            self._unexpected.add(container)

    def drop_check(self, container: str) -> None:
        """Have a container not compared any more."""
        self._checks.pop(container, None)
        self._unexpected.discard(container)

    def take_checks(self, most: int) -> dict[str, bool]:
        """Take containers to compare now, and whether nothing known has written them.

        A write that is noticed from now on has them compared again.
        """
        now = monotonic()
        due = (key for key, when in self._checks.items() if when <= now)
        taken = {key: key in self._unexpected for key in islice(due, most)}
        for key in taken:
            self.drop_check(key)
        return taken

    def forget(self, containers: Iterable[str]) -> None:
        """Drop containers that have ended."""
        for key in containers:
            self._changed.pop(key, None)
            self._held.pop(key, None)
            self._expected_until.pop(key, None)
            self.drop_check(key)

    def clear(self) -> tuple[str, ...]:
        """Drop all, and return those that waited."""
        waiting = tuple(self.containers)
        for one in self._queues():
            one.clear()
        self._checks.clear()
        self._expected_until.clear()
        self._unexpected.clear()
        return waiting

    def note_progress(self) -> None:
        """Have `progress` return: writes have ended, or nothing waits any more."""
        self._progress.set()
        self._progress = asyncio.Event()

    async def progress(self) -> None:
        """Wait until writes have ended; not for those that end before the call."""
        await self._progress.wait()

    def be_idle(self) -> None:
        """Note that nothing is changed or in flight."""
        self.is_idle = True
        self.note_progress()

    def wake(self) -> None:
        """Have `wait` return, and starts wait for what is done then."""
        self.is_idle = False
        self._wake.set()

    async def wait(self) -> None:
        """Wait until something is changed, or a comparison is due."""
        if not self._changed:
            self.be_idle()
        due = min(self._checks.values(), default=None)
        delay = None if due is None else max(0.0, due - monotonic())
        try:
            async with asyncio.timeout(delay):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _queues(self) -> Iterator[dict[str, float]]:
        yield self._changed
        yield self._in_flight
        yield self._held
