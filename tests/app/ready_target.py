"""A target whose applier is there already."""

from __future__ import annotations

from typing import Generic, TypeVar

from nri_resmgr.app.background.reconciler import Applier
from nri_resmgr.policy.events import Event

A = TypeVar("A", bound=Applier)


class ReadyTarget(Generic[A]):
    """Wants its applier at once.

    Attributes:
        faults: What was reported as the reason why nothing is applied, in order.
    """

    def __init__(self, applier: A) -> None:
        self._applier = applier
        self.faults: list[str] = []

    def note(self, _: Event) -> bool:
        return True

    def has_leftovers(self) -> bool:
        return False

    def is_wanted(self) -> bool:
        return True

    async def make_applier(self) -> A:
        return self._applier

    def note_fault(self, why: str) -> None:
        self.faults.append(why)
