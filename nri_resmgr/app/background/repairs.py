"""Who is told anew what he should have, how often, and when it is no use any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

MOST_ATTEMPTS: Final = 5
"""Updates of one container, before whoever writes otherwise is left alone."""

# Each update takes a containerd 12 ms of its one lock: a quarter of a second, and
# then the starts of containers that waited.
MOST_AT_ONCE: Final = 20

FORGIVEN: Final = 600.0
"""Seconds of being as decided after which attempts are forgotten."""


@attrs.define(eq=False, repr=False)
class _Case:
    """A container that had to be repaired.

    Attributes:
        attempts: Updates that were sent.
        last: When the last one was.
        well_since: Since when it is as decided; None while it is not.
        is_given_up: Whether it is left alone.
    """

    attempts: int = 0
    last: float = float("-inf")
    well_since: float | None = None
    is_abandoned: bool = False


class Repairs:
    """Keeps count of updates that were to repair something.

    Args:
        send: Has containers updated.
        pause: Seconds between two attempts for one container.
        at_once: Updates that may be sent together.

    Attributes:
        sent: Updates that were sent so far.
        given_up: Containers that were given up so far.
    """

    def __init__(
        self,
        send: Callable[[Iterable[str]], object],
        pause: float = 0.0,
        at_once: int = MOST_AT_ONCE,
    ) -> None:
        self._at_once = at_once
        self._send = send
        self._pause = pause
        self._cases: dict[str, _Case] = {}
        self.sent = self.abandoned = 0

    def attempts_of(self, container: str) -> int:
        """Say how often a container was repaired of late."""
        case = self._cases.get(container)
        return case.attempts if case else 0

    def is_abandoned(self, container: str) -> bool:
        """Tell whether a container is left alone."""
        case = self._cases.get(container)
        return case is not None and case.is_abandoned

    def repair(
        self, containers: Iterable[str], now: float
    ) -> tuple[tuple[str, ...], bool]:
        """Send updates for containers that are not as decided.

        Args:
            containers: Their ids.
            now: A monotonic time, seconds.

        Returns:
            Those that are left alone from now on, and whether others have to wait
            for the next time.
        """
        lost, due = [], []
        for key in containers:
            case = self._cases.setdefault(key, _Case())
            case.well_since = None
            if case.is_abandoned or now < case.last + self._pause:
                continue
            if case.attempts >= MOST_ATTEMPTS:
                case.is_abandoned = True
                lost.append(key)
            else:
                due.append((case.attempts, key))
        # Who has had the fewest attempts comes first.
        due.sort(key=lambda one: one[0])
        chosen = [key for _, key in due[: self._at_once]]
        for key in chosen:
            self._cases[key].attempts += 1
            self._cases[key].last = now
        if chosen:
            self._send(chosen)
        self.sent += len(chosen)
        self.abandoned += len(lost)
        return tuple(lost), len(due) > len(chosen)

    def well(self, container: str, now: float) -> None:
        """Note that a container is as decided."""
        case = self._cases.get(container)
        if case is None:
            return
        if case.well_since is None:
            case.well_since = now
        elif now - case.well_since >= FORGIVEN:
            del self._cases[container]

    def keep_only(self, containers: Iterable[str]) -> None:
        """Forget the others."""
        for key in self._cases.keys() - set(containers):
            del self._cases[key]
