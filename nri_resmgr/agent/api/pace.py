"""Pauses between attempts: full jitter, and what a server asks for."""

from __future__ import annotations

from typing import Final

FIRST: Final = 1.0
LAST: Final = 300.0
# For what a person has to change: a CRD, a right.
ASLEEP: Final = 300.0
SPREAD: Final = 60.0
# A server that asks for more is not believed.
_MOST_ASKED_FOR: Final = 600.0


class Backoff:
    """Pauses from 0 to an upper end, which grows from 1 s to 5 min.

    All of a pause is random: when an API server returns, the agents of all nodes come
    back spread over these 5 minutes. The random number, from 0 to 1, is an argument.
    """

    def __init__(self) -> None:
        self._failures = 0

    @property
    def is_fresh(self) -> bool:
        """True if there was no failure since the start or `reset`."""
        return self._failures == 0

    @property
    def is_at_its_end(self) -> bool:
        """True if pauses grow no more."""
        return FIRST * 2.0**self._failures >= LAST

    def reset(self) -> None:
        """Begin again with the shortest pauses."""
        self._failures = 0

    def next(self, chance: float, retry_after: float | None = None) -> float:
        """Count a failure and return the pause after it, in seconds.

        Args:
            chance: A random number from 0 to 1.
            retry_after: What the server asked for: the pause is not shorter.
        """
        end = min(LAST, FIRST * 2.0**self._failures)
        # No more than that counts, lest the power has no bound.
        self._failures += not self.is_at_its_end
        return min(retry_after or 0.0, _MOST_ASKED_FOR) + chance * end


def asleep(chance: float) -> float:
    """Return the pause before looking for a missing kind or right again: 4 to 6 min."""
    return ASLEEP - SPREAD + 2 * SPREAD * chance
