"""Events are sent from any number on, to any client, and gaps are marked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from nri_resmgr.app.observing.history import History
from nri_resmgr.control.client import Client
from nri_resmgr.control.events import event_lines
from tests.control.daemon_parts import asking, make_parts
from tests.control.json_schema import mistakes

VERSION = {"apiVersion": "control.nri/v1"}
GAP = VERSION | {"kind": "gap"}


async def collect(lines: AsyncIterator[bytes]) -> list[dict[str, Any]]:
    pieces = [piece async for piece in lines]
    return [json.loads(line) for line in b"".join(pieces).splitlines()]


def noted(count: int, max_weight: int = 20_000) -> History:
    history = History(max_weight, lambda: 0)
    for number in range(count):
        history.note("session.ended", why=f"{number}")
    return history


async def test_events_after_a_number_are_sent() -> None:
    lines = await collect(event_lines(noted(3), 1, follow=False))

    assert lines == [
        VERSION | {"kind": "EventList", "first": 1, "last": 3},
        VERSION | {"number": 2, "kind": "session.ended", "why": "1"},
        VERSION | {"number": 3, "kind": "session.ended", "why": "2"},
    ]


async def test_a_client_with_all_events_gets_no_more() -> None:
    _, *events = await collect(event_lines(noted(3), 3, follow=False))

    assert events == []


async def test_events_that_are_no_longer_kept_are_a_gap() -> None:
    heading, gap, *events = await collect(event_lines(noted(9, 3), 2, follow=False))

    assert (heading["first"], heading["last"]) == (7, 9)
    assert gap == GAP | {"missed": 4, "next": 7}
    assert mistakes(gap, "gap") == []
    assert [one["number"] for one in events] == [7, 8, 9]


async def test_a_client_that_asks_from_the_beginning_gets_all_kept_events() -> None:
    _, *events = await collect(event_lines(noted(9, 3), 0, follow=False))

    assert [one["number"] for one in events] == [7, 8, 9]


async def test_a_number_from_before_a_restart_is_a_gap_of_unknown_length() -> None:
    _, gap, *events = await collect(event_lines(noted(2), 900, follow=False))

    assert gap == GAP | {"missed": 0, "next": 1}
    assert [one["number"] for one in events] == [1, 2]


async def test_a_follower_that_reads_slowly_finds_a_gap() -> None:
    history = noted(1, max_weight=3)
    lines = event_lines(history, 0, follow=True)
    await anext(lines)
    await anext(lines)
    for number in range(10):
        history.note("drift.cleared", word=str(number))
    text = (await anext(lines)).splitlines()
    await lines.aclose()  # type: ignore[attr-defined]  # a generator is behind it

    assert json.loads(text[0]) == GAP | {"missed": 7, "next": 9}
    assert [json.loads(one)["number"] for one in text[1:]] == [9, 10, 11]


def read_some(client: Client, count: int) -> list[int]:
    """Follow until there were *count* events."""
    found: list[int] = []
    for line in client.lines("/v1/events", follow="1"):
        if "number" in line:
            found.append(line["number"])
        if len(found) == count:
            break
    return found


async def test_two_followers_see_the_same(tmp_path: Path) -> None:
    parts = make_parts()
    async with asking(parts, tmp_path) as client:
        reading = [asyncio.to_thread(read_some, client, 3) for _ in range(2)]
        both = [asyncio.create_task(one) for one in reading]
        await asyncio.sleep(0.05)
        parts.run("a", 1)
        await asyncio.sleep(0.05)
        parts.run("b", 1)
        found = await asyncio.gather(*both)

    assert found == [[1, 2, 3], [1, 2, 3]]


async def test_a_follower_that_disconnects_is_removed(tmp_path: Path) -> None:
    parts = make_parts()
    async with asking(parts, tmp_path) as client:
        await asyncio.to_thread(read_some, client, 1)
        async with asyncio.timeout(5):
            while parts.history.followers:  # noqa: ASYNC110 - the server sets no event
                await asyncio.sleep(0.01)


async def test_more_events_than_one_batch_are_sent_completely(tmp_path: Path) -> None:
    parts = make_parts()
    for number in range(250):
        parts.history.note("drift.cleared", word=str(number))
    async with asking(parts, tmp_path) as client:
        lines = await asyncio.to_thread(lambda: list(client.lines("/v1/events")))

    assert [one["number"] for one in lines[1:]] == list(range(1, 252))
