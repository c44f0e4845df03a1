"""When what a node can grant is published: pure, time and chance are arguments.

Changes come in bursts, since a pod has several containers, and on many nodes at once,
since a deployment has many pods. So changes are collected before a write, writes have a
pause between them, and all times are up to half longer, at random.

Checked by: tests/agent/test_publishing_pace.py.
"""

from __future__ import annotations

from typing import Final

import msgspec

_MOST_LATER: Final = 0.5
"""Times are up to this part longer, at random: nodes do not write together."""


class PublishingPace(msgspec.Struct, frozen=True):
    """When a change is published, in seconds.

    Attributes:
        settle: After a first change: a pod has several containers.
        pause: From one write to the next.
        look: From one read of the daemon to the next, where nothing is to be written.
        again: Until the object is applied again though nothing changed: it may have
            been deleted, or be another manager's no longer.
    """

    settle: float = 1.0
    pause: float = 30.0
    look: float = 2.0
    again: float = 600.0


class PublishingSchedule:
    """Says for how long a publisher rests, and whether it applies the object anyway.

    Args:
        pace: The times.
        at: Now, in monotonic seconds, as everywhere.
        chance: A random number from 0 to 1, as everywhere.
    """

    def __init__(self, pace: PublishingPace, at: float, chance: float) -> None:
        self._pace = pace
        self._free_at = at
        self._again_at = at + _later(pace.again, chance)
        self._due_at: float | None = None
        self.changed(at, chance)

    def changed(self, at: float, chance: float) -> None:
        """Note a change; it is published with others that come until then."""
        if self._due_at is None:
            settled = _later(self._pace.settle, chance)
            self._due_at = max(at, self._free_at) + settled

    def rest(self, at: float) -> float:
        """Return the seconds for which the daemon is not asked."""
        until = self._again_at if self._due_at is None else self._due_at
        return max(0.0, until - at)

    def looks(self, at: float) -> bool:
        """Begin a look: changes from now on are those of the next one.

        Returns:
            Whether the object is to be applied even if it is the same.
        """
        self._due_at = None
        return at >= self._again_at

    def looked(self, at: float, chance: float, *, has_written: bool) -> None:
        """End a look."""
        pace = self._pace
        self._free_at = at + _later(pace.pause if has_written else pace.look, chance)
        if has_written or at >= self._again_at:
            self._again_at = max(self._free_at, at + _later(pace.again, chance))


def _later(seconds: float, chance: float) -> float:
    return seconds * (1.0 + _MOST_LATER * chance)
