"""Counts equal refusals: the kubelet repeats a refused resize each second."""

from __future__ import annotations

from typing import Final

from nri_resmgr.policy.events import Created, Event, Updated

# Beyond these the oldest are forgotten, and reported as new ones when they come again.
_MOST_CONTAINERS: Final = 1024
_MOST_SENTENCES: Final = 16
"""Of one container: its sentences differ as free CPUs come and go."""


class RefusalCounts:
    """Counts the refusals of each container by their sentences, until it is decided."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def add(self, title: str, why: str) -> int:
        """Count a refusal; return how often there was the same one, 1 for a new one."""
        of_one = self._counts.setdefault(title, {})
        of_one[why] = of_one.get(why, 0) + 1
        if len(of_one) > _MOST_SENTENCES:
            del of_one[next(iter(of_one))]
        if len(self._counts) > _MOST_CONTAINERS:
            del self._counts[next(iter(self._counts))]
        return of_one[why]

    def decided(self, event: Event) -> None:
        """Forget the refusals of a container whose request was granted."""
        if isinstance(event, Created | Updated):
            self._counts.pop(event.spec.title, None)
