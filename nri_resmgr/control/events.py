"""``GET /v1/events``: recent events and those to come, one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Final

from nri_resmgr.app.observing.history import History, Row
from nri_resmgr.control.daemon_view import API_VERSION
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.decision import Reason
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable_json

_AT_ONCE: Final = 100  # rows that are sent before the client is waited for

GAP: Final = "gap"
"""The kind of a line that replaces events that are no longer kept."""


def event_of(row: Row) -> JsonObject:
    """Describe a row; empty fields are left out."""
    event: JsonObject = {
        "number": row.number,
        "time": time_text(row.time),
        "kind": row.kind,
        "title": row.title,
        "podUid": row.pod_uid,
        "category": row.word,
        "why": row.why,
        "containers": [reason_of(reason) for reason in row.reasons],
        "updates": len(row.updates),
    }
    return {key: value for key, value in event.items() if value}


def reason_of(reason: Reason) -> JsonObject:
    """Describe a decision on one container; empty fields are left out."""
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

    There is no queue for a client that reads slower than events happen: it continues
    from the history, and a gap counts the events that are no longer kept.
    """
    first, last = history.first, history.last
    yield _line({"kind": "EventList", "first": first, "last": last})
    at = since
    if at > last:  # a number of an earlier process
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
    # A client that asks for all kept events misses none.
    if begin > after + 1 and after:
        yield _line({"kind": GAP, "missed": begin - after - 1, "next": begin})
    for row in rows:
        yield _line(event_of(row))


def _line(data: JsonObject) -> bytes:
    line = {"apiVersion": API_VERSION} | data
    return printable_json(json.dumps(line)).encode() + b"\n"
