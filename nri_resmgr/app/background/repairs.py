"""Repairs: updates sent again after drift, with limits on attempts and rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs

MOST_ATTEMPTS: Final = 5
"""Updates of one container, before the drift is left as it is."""

MOST_AT_ONCE: Final = 20
"""Updates by the runtime that are sent together.

Each holds containerd's one lock for 12 ms: a quarter of a second in all, in which no
container starts.
"""

CONTEST_PAUSE: Final = 0.8
"""Seconds between two writes of CPUs that another program overwrites all the time.

With the write itself less than the second for which CPUs may be shared by mistake.
"""

FORGIVEN: Final = 600.0
"""Seconds without drift after which attempts are forgotten."""


@attrs.define(eq=False, repr=False)
class _Attempts:
    """The repairs of one container.

    Attributes:
        attempts: Updates that were sent.
        last: The time of the last one.
        well_since: The time since which it has no drift; None while it has.
        is_abandoned: Whether no more updates are sent.
    """

    attempts: int = 0
    last: float = float("-inf")
    well_since: float | None = None
    is_abandoned: bool = False


class Repairs:
    """Sends updates to repair drift, and counts them.

    Args:
        send: Sends updates of containers.
        pause: Seconds between two attempts for one container.
        at_once: The most updates that are sent together.
        is_limited: Whether an update of a container counts for *at_once*.

    Attributes:
        sent: Updates sent so far.
        abandoned: Containers abandoned so far.
    """

    def __init__(
        self,
        send: Callable[[Iterable[str]], object],
        pause: float = 0.0,
        at_once: int = MOST_AT_ONCE,
        is_limited: Callable[[str], bool] = lambda _container: True,
    ) -> None:
        self._at_once = at_once
        self._is_limited = is_limited
        self._send = send
        self._pause = pause
        self._cases: dict[str, _Attempts] = {}
        self.sent = self.abandoned = 0

    def attempts_of(self, container: str) -> int:
        """Return the recent attempts to repair a container."""
        case = self._cases.get(container)
        return case.attempts if case else 0

    def is_abandoned(self, container: str) -> bool:
        """Return whether a container is abandoned."""
        case = self._cases.get(container)
        return case is not None and case.is_abandoned

    def repair(
        self, containers: Iterable[str], now: float
    ) -> tuple[tuple[str, ...], bool]:
        """Send updates for containers with drift.

        Args:
            containers: Their ids.
            now: A monotonic time, seconds.

        Returns:
            The containers abandoned now, and whether others wait for the next round.
        """
        lost, due = [], []
        for key in containers:
            case = self._cases.setdefault(key, _Attempts())
            case.well_since = None
            if case.is_abandoned or now < case.last + self._pause:
                continue
            if case.attempts >= MOST_ATTEMPTS:
                case.is_abandoned = True
                lost.append(key)
            else:
                due.append((case.attempts, key))
        # Fewest attempts first: containers with lasting drift must not block others.
        due.sort(key=lambda one: one[0])
        chosen = tuple(self._choose(key for _, key in due))
        for key in chosen:
            self._cases[key].attempts += 1
            self._cases[key].last = now
        if chosen:
            self._send(chosen)
        self.sent += len(chosen)
        self.abandoned += len(lost)
        return tuple(lost), len(due) > len(chosen)

    def _choose(self, due: Iterable[str]) -> Iterator[str]:
        left = self._at_once
        for key in due:
            if not self._is_limited(key):
                yield key
            elif left:
                left -= 1
                yield key

    def well(self, container: str, now: float) -> None:
        """Note that a container has no drift."""
        case = self._cases.get(container)
        if case is None:
            return
        # Drift that returns soon counts as the same one: attempts are kept for a while.
        if case.well_since is None:
            case.well_since = now
        elif now - case.well_since >= FORGIVEN:
            del self._cases[container]

    def keep_only(self, containers: Iterable[str]) -> None:
        """Forget the others."""
        for key in self._cases.keys() - set(containers):
            del self._cases[key]
