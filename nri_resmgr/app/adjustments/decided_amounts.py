"""The amounts decided for adjusted containers, as long as the runtime may report them.

The runtime's record follows a decision later: its update waits for a reply or a call,
and for the next session if this one ends. Until then it has the amounts of an earlier
decision, which must not be taken for a resize by the kubelet. Updates arrive in the
order of their decisions, so what the record has been seen to have left does not come
back. A container's own amounts are the first, and perhaps also the last of them: a
record that has these may be before all adjustments, or behind.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from nri_resmgr.policy.events import (
    Adjusted,
    ContainerSpec,
    Created,
    Event,
    Synchronized,
    Updated,
)
from nri_resmgr.values import Bytes, MilliCpus

# Those of a runtime that takes no updates for a long time; the oldest are dropped.
_MOST: Final = 16


class Amounts(msgspec.Struct, frozen=True):
    """Amounts of a container that show in its cgroup values."""

    request: MilliCpus
    limit: MilliCpus | None
    memory_limit: Bytes | None


class DecidedAmounts:
    """Has the decided amounts of containers that are, or were, adjusted."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Amounts, ...]] = {}

    def note(self, event: Event, present: Collection[str]) -> None:
        """Note the amounts of an event that was decided, and drop absent containers."""
        match event:
            case Created() | Updated():
                self.add(event.spec)
            case Synchronized():
                for spec in event.specs:
                    self.add(spec)
        for gone in [key for key in self._found if key not in present]:
            del self._found[gone]

    def add(self, spec: ContainerSpec) -> None:
        """Note the present amounts of a container, if it is or was adjusted."""
        found = self._found.get(spec.id, ())
        if not found:
            if spec.adjusted is None:
                return
            found = (_amounts_of(spec.adjusted),)
        if found[-1] != (amounts := _amounts_of(spec)):
            found = (*found, amounts)[-_MOST:]
        self._found[spec.id] = found

    def of(self, container: str) -> tuple[Amounts, ...]:
        """Return what the runtime may report of a container, the oldest first."""
        return self._found.get(container, ())

    def behind(self) -> list[str]:
        """Return the adjusted containers of which the runtime may have other amounts.

        As far as it has reported them since.
        """
        return [key for key, found in self._found.items() if len(found) > 1]

    def keep(self, spec: ContainerSpec, found: tuple[Amounts, ...]) -> None:
        """Keep only these of a container: the runtime has left the others."""
        if len(found) == 1 and spec.adjusted is None:
            self._found.pop(spec.id, None)
        elif found:
            self._found[spec.id] = found


def _amounts_of(one: ContainerSpec | Adjusted) -> Amounts:
    return Amounts(one.request, one.limit, one.memory_limit)
