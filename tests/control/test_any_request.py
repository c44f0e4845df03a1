"""Whatever is asked is answered as the schema says, or refused with a sentence."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.plugin.changes.rebalancing import NotSynchronized
from nri_resmgr.control.client import Client, QueryRefused
from nri_resmgr.control.http import HttpReply, HttpRequest
from nri_resmgr.control.routes import routes_of
from nri_resmgr.daemon.cluster.documents import ClusterDocuments
from nri_resmgr.values import InputError
from tests.control.daemon_parts import Parts, asking, make_parts
from tests.control.json_schema import mistakes
from tests.examples import examples

WORDS = st.sampled_from(["", "a", "shop/a", "0", "1", "7", "-1", "main", "id-", "²"])
TEXTS = WORDS | st.text(max_size=8)
NAMES = st.sampled_from(["pod", "container", "since", "follow"]) | st.text(max_size=4)
RULES = st.fixed_dictionaries(
    {"pattern": TEXTS, "level": st.sampled_from(["debug", "info", "loud"])}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner),
    max_leaves=6,
)
BODIES = (RULES | JSON).map(lambda one: json.dumps(one).encode()) | st.binary()


@pytest.fixture(scope="module")
def parts() -> Parts:
    """Make a node once: requests change nothing but log levels."""
    made = make_parts()
    for name in ("a", "ab", "b"):
        made.run(name, 1)
    made.run("huge", 64)
    made.stop("b")
    made.daemon.cluster = ClusterDocuments("/nonexistent")
    return made


@examples(2)
@given(
    st.integers(0, 13),
    st.dictionaries(NAMES, TEXTS, max_size=3),
    BODIES,
)
def test_any_request_is_answered_or_refused(
    parts: Parts, place: int, query: dict[str, str], body: bytes
) -> None:
    routes = sorted(routes_of(parts.daemon).items(), key=lambda item: item[0])
    assert len(routes) == 14
    (method, path), handler = routes[place]
    reply: HttpReply | None
    try:
        found = handler(HttpRequest(method, path, query, body))
        done = found if isinstance(found, HttpReply) else asyncio.run(awaited(found))
    except (InputError, NotSynchronized) as refusal:
        reply, why = None, str(refusal)
    else:
        reply, why = done, "\n".join(faults(path, done))

    assert bool(why) == (reply is None), why


async def awaited(found: Any) -> HttpReply:
    reply: HttpReply = await found
    return reply


def faults(path: str, reply: HttpReply) -> list[str]:
    """Compare an answer with the schema; events are not waited for."""
    if isinstance(reply.body, AsyncIterator) or path == "/v1/schema":
        return []
    answer = json.loads(reply.body)
    return mistakes(answer, answer["kind"])


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with asking(make_parts(), tmp_path) as client:
        rule = {"pattern": "x" * 5000, "level": "debug"}
        with pytest.raises(QueryRefused, match="the body exceeds 4096 bytes") as raised:
            await asyncio.to_thread(client.put, "/v1/log", rule)

    assert raised.value.status == 413


def followed(client: Client) -> Any:
    lines = client.lines("/v1/events", follow="1")
    next(lines)
    return lines


async def test_followers_leave_connections_to_other_clients(tmp_path: Path) -> None:
    async with asking(make_parts(), tmp_path) as client:
        followers = [await asyncio.to_thread(followed, client) for _ in range(8)]
        with pytest.raises(QueryRefused, match=r"^only 8 clients can follow; end one"):
            await asyncio.to_thread(followed, client)
        state = await asyncio.to_thread(client.get, "/v1/state")
        await asyncio.to_thread(followers.pop().close)
        async with asyncio.timeout(5):
            followers.append(await until_followed(client))
        for one in followers:
            await asyncio.to_thread(one.close)

    assert state["kind"] == "State"


async def until_followed(client: Client) -> Any:
    while True:
        try:
            return await asyncio.to_thread(followed, client)
        except QueryRefused:
            await asyncio.sleep(0.02)


async def test_a_refusal_is_valid_by_the_schema(tmp_path: Path) -> None:
    async with asking(make_parts(), tmp_path):
        path = str(tmp_path / "run" / "control.sock")
        answer = await asyncio.to_thread(raw, path, b"GET /v1/nothing HTTP/1.0\r\n\r\n")

    assert mistakes(json.loads(answer), "Refusal") == []


def raw(path: str, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(request)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        return answer.read()
