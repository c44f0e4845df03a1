"""Trials of documents as events for the control socket: what each would change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.app.configuration.status import Document, WouldChange
from nri_resmgr.app.observers.event_kinds import EventKind
from nri_resmgr.app.observers.observer import EventLog
from nri_resmgr.values.counts import count_text

MOST_SHOWN: Final = 100
"""Containers of a trial that have an event of their own."""

_TRIED: Final = "configuration.tried"
_CHANGED: Final = "container.would-change"


class TrialEvents:
    """Notes each trial once, and later what is different in it.

    A document is tried again and again, because containers come and go.

    Attributes:
        events: Takes the events; None for no events.
    """

    def __init__(self) -> None:
        self.events: EventLog | None = None
        self._document: Document | None = None
        self._count = 0
        self._shown: dict[str, str] = {}

    def note(self, document: Document, found: tuple[WouldChange, ...]) -> bool:
        """Note a trial; return whether it is the first one of a document."""
        is_new = document != self._document
        if is_new:
            self._document, self._count, self._shown = document, -1, {}
        before, self._shown = self._shown, {}
        if len(found) != self._count:
            self._count = len(found)
            self._note(_TRIED, document.name, _summary(self._count))
        for one in found[:MOST_SHOWN]:
            why = self._shown[one.id] = ", ".join(_differences(one))
            if before.get(one.id) != why:
                self._note(_CHANGED, one.title, why)
        return is_new

    def end(self) -> None:
        """Note that no document is tried any more."""
        self._document = None

    def _note(self, kind: EventKind, title: str, why: str) -> None:
        if self.events is not None:
            self.events.note(kind, title, why)


def _summary(count: int) -> str:
    if not count:
        return "would change no container"
    what = count_text(count, "container")
    first = f"; the first {MOST_SHOWN} follow" if count > MOST_SHOWN else ""
    return f"would change {what}{first}"


def _differences(one: WouldChange) -> Iterator[str]:
    now, then = one.now, one.then
    if now.cpus != then.cpus:
        yield f"CPUs {now.cpus or 'any'} to {then.cpus or 'any'}"
    if now.mems != then.mems:
        yield f"memory nodes {now.mems or 'any'} to {then.mems or 'any'}"
    if now.shares != then.shares:
        yield f"weight {now.shares or 'as it is'} to {then.shares or 'as it is'}"
