"""The differences between a recording and its replay."""

from __future__ import annotations

from typing import Final

import attrs
import msgspec

from nri_resmgr.topology import Machine


class ReplayDifference(msgspec.Struct, frozen=True):
    """A property that is not as recorded.

    Attributes:
        time: When it first differed, UNIX nanoseconds.
        title: ``namespace/pod/container``, or ``node``.
        what: The property: ``cpus``, ``mems``, ``pool``, ``refused``, or ``sent`` for
            the values sent to the runtime.
        recorded: The recorded value; empty for none.
        now: The value in the replay.
    """

    time: int
    title: str
    what: str
    recorded: str
    now: str


class Outcome(msgspec.Struct, frozen=True):
    """The result of a replay.

    Attributes:
        requests: Number of the runtime's requests that were answered.
        decisions: Number of decisions on containers that were compared.
        differences: In order; one that persists is listed once.
    """

    requests: int
    decisions: int
    differences: tuple[ReplayDifference, ...]


class Replacements(msgspec.Struct, frozen=True):
    """Parts that replace those of the recording.

    Attributes:
        document: The text of a configuration; None for the recorded ones.
        machine: The machine; None for the recorded one.
    """

    document: str | None = None
    machine: Machine | None = None


AS_RECORDED: Final = Replacements()


@attrs.define(eq=False, repr=False)
class Differences:
    """Collects differences; one that persists counts once."""

    found: list[ReplayDifference] = attrs.field(factory=list)
    _last: dict[tuple[str, str], tuple[str, str]] = attrs.field(factory=dict)

    def compare(
        self, time: int, title: str, what: str, pair: tuple[object, object]
    ) -> bool:
        """Compare a recorded value with the present one; return whether they differ."""
        recorded, now = map(str, pair)
        key = title, what
        if recorded == now:
            self._last.pop(key, None)
            return False
        if self._last.get(key) != (recorded, now):
            self._last[key] = recorded, now
            self.found.append(ReplayDifference(time, title, what, recorded, now))
        return True
