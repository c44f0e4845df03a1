"""What a replay is to find out, and what it found."""

from __future__ import annotations

from typing import Final

import attrs
import msgspec

from nri_resmgr.topology import Machine


class Difference(msgspec.Struct, frozen=True):
    """One thing that is not as it was recorded.

    Attributes:
        time: When it came up, UNIX nanoseconds.
        title: ``namespace/pod/container``, or ``node``.
        what: Which of its properties: ``cpus``, ``mems``, ``pool``, ``refused``,
            ``told`` for what the runtime was told of it.
        recorded: As it was; empty for nothing.
        now: As it is.
    """

    time: int
    title: str
    what: str
    recorded: str
    now: str


class Outcome(msgspec.Struct, frozen=True):
    """What came of a replay.

    Attributes:
        requests: How many of the runtime's were answered.
        decisions: How many containers' were compared, each time one was decided.
        differences: In order; one that goes on is told once.
    """

    requests: int
    decisions: int
    differences: tuple[Difference, ...]


class Instead(msgspec.Struct, frozen=True):
    """What is to be other than in the recording.

    Attributes:
        document: The text of a configuration; None for those of the recording.
        machine: None for the recording's.
    """

    document: str | None = None
    machine: Machine | None = None


AS_RECORDED: Final = Instead()


@attrs.define(eq=False, repr=False)
class Differences:
    """Collects differences; one that goes on counts once."""

    found: list[Difference] = attrs.field(factory=list)
    _last: dict[tuple[str, str], tuple[str, str]] = attrs.field(factory=dict)

    def compare(
        self, time: int, title: str, what: str, pair: tuple[object, object]
    ) -> bool:
        """Compare what was recorded with what is now; tell whether they differ."""
        recorded, now = map(str, pair)
        key = title, what
        if recorded == now:
            self._last.pop(key, None)
            return False
        if self._last.get(key) != (recorded, now):
            self._last[key] = recorded, now
            self.found.append(Difference(time, title, what, recorded, now))
        return True
