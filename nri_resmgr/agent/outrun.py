"""Pauses after writes that those of other nodes have outrun.

Pure: time is an argument.
"""

from __future__ import annotations

from typing import Final

from nri_resmgr.agent.api.pace import LAST

_AGAIN: Final = 10.0  # seconds at most, the first time; doubled each time after


class Outrun:
    """Pauses of a node that wants an entry in an object that many nodes write."""

    def __init__(self) -> None:
        self._times = 0  # in a row
        self._until = 0.0

    def rest(self, at: float) -> float:
        """Return the seconds for which nothing is to be tried, whatever changes.

        Args:
            at: Now, in monotonic seconds.
        """
        return max(0.0, self._until - at)

    def happened(self, at: float, chance: float) -> float:
        """Note that another node wrote at the same moment; return the pause after it.

        Args:
            at: Now.
            chance: A random number from 0 to 1.
        """
        end = min(_AGAIN * 2.0 ** min(self._times, 8), LAST)
        self._times += 1
        pause = chance * end
        self._until = at + pause
        return pause

    def reset(self) -> None:
        """Begin again with the shortest pauses."""
        self._times = 0
