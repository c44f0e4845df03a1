"""``GET /v1/events``: what happened, a JSON object per line, and what goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from nri_resmgr.app.observing.history import History, Row
from nri_resmgr.control.subject import API_VERSION
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.decision import Reason

_AT_ONCE: Final = 100  # rows between two looks at whether the client keeps up

GAP: Final = "gap"
"""The kind of a line that stands for events that are no longer kept."""


def event_of(row: Row) -> dict[str, Any]:
    """Describe a row; what it has not is left out."""
    event: dict[str, Any] = {
        "number": row.number,
        "time": time_text(row.time),
        "kind": row.kind,
        "title": row.title,
        "word": row.word,
        "why": row.why,
        "containers": [reason_of(reason) for reason in row.reasons],
        "updates": len(row.updates),
    }
    return {key: value for key, value in event.items() if value}


def reason_of(reason: Reason) -> dict[str, Any]:
    """Describe a decision on one container; what it does not say is left out."""
    found = {
        "id": reason.container,
        "title": reason.title,
        "rule": reason.rule.value,
        "cpus": str(reason.cpus),
        "mems": str(reason.mems),
        "pool": reason.pool,
        "decided": reason.decided,
        "detail": str(reason.detail),
        "tried": [{"pool": pool, "why": why} for pool, why in reason.tried],
        "source": str(reason.source),
    }
    return {key: value for key, value in found.items() if value}


async def event_lines(
    history: History, since: int, *, follow: bool
) -> AsyncIterator[bytes]:
    """Yield a heading, then the events after *since*, then those to come.

    A client that reads slower than things happen has no queue here: it reads on
    from the history, and where that has moved on, a gap says how much was missed.
    """
    first, last = history.first, history.last
    heading = {"apiVersion": API_VERSION, "kind": "EventList"}
    yield _line(heading | {"first": first, "last": last})
    at = since
    if at > last:  # a number from before our start
        at = 0
        yield _line({"kind": GAP, "missed": 0, "next": first})
    while True:
        while rows := history.since(at, _AT_ONCE):
            yield b"".join(_lines(rows, at))
            at = rows[-1].number
        if not follow:
            return
        await history.more(at)


def _lines(rows: tuple[Row, ...], after: int) -> Iterator[bytes]:
    begin = rows[0].number
    if begin > after + 1 and after:
        yield _line({"kind": GAP, "missed": begin - after - 1, "next": begin})
    for row in rows:
        yield _line(event_of(row))


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"
