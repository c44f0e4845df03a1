"""What a watch has to bear, played by a server with real sockets.

One test for each row of what was seen of API servers; pauses are noted, not slept.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.agent.api import (
    NODES,
    Access,
    Changed,
    Failing,
    News,
    Recovered,
    Removed,
    Resource,
    Synced,
    Target,
    Unreadable,
)
from nri_resmgr.agent.api.credentials import Credentials
from nri_resmgr.agent.api.errors import (
    BadAnswer,
    Forbidden,
    KindMissing,
    ServerFailed,
    TooLarge,
    Unauthorized,
    Unreachable,
)
from nri_resmgr.agent.api.kinds import MissingKinds
from nri_resmgr.agent.api.objects import MOST_BYTES
from nri_resmgr.agent.api.transport import Call, Transport
from nri_resmgr.agent.api.watcher import Watcher, next_piece
from tests.agent.fake_api_server import (
    FakeApiServer,
    Fault,
    Request,
    Wire,
    line,
    status,
)
from tests.waiting import until

BALLOONS = Resource(
    "config.nri", "v1alpha1", "balloonspolicies", "BalloonsPolicy", True
)
SYSTEM = BALLOONS.path("kube-system")
DEFAULT = Target(BALLOONS, "kube-system", "default")
ALL = Target(BALLOONS, "kube-system")


class Watched:
    """A running watch: what it reported, and for how long it wanted to pause."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self.pauses: list[float] = []
        self._new = asyncio.Event()

    def receive(self, news: News) -> None:
        self.news.append(news)
        self._new.set()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0.01)

    async def until(self, *kinds: type[News]) -> list[News]:
        """Wait for reports of these kinds, in this order; return and forget all."""
        while not _contains([type(one) for one in self.news], list(kinds)):
            self._new.clear()
            async with asyncio.timeout(60):
                await self._new.wait()
        news, self.news = self.news, []
        return news


def _contains(kinds: list[type], wanted: list[type]) -> bool:
    left = iter(kinds)
    return all(kind in left for kind in wanted)


@asynccontextmanager
async def watching(access: Access, target: Target = DEFAULT) -> AsyncIterator[Watched]:
    watched = Watched()
    transport = Transport(access, Credentials(access))
    kinds = MissingKinds(transport, watched.sleep)
    watcher = Watcher(transport, target, watched.receive, kinds, watched.sleep)
    task = asyncio.create_task(watcher.run())
    try:
        yield watched
    finally:
        assert not task.done(), "a watch never ends by itself"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()


def policy(name: str = "default", **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def only(
    wants: Callable[[Request], bool], answer: Callable[[Wire], Awaitable[None]]
) -> Fault:
    """Return a fault of the first request that is wanted."""

    async def fault(request: Request, wire: Wire) -> bool:
        if not wants(request):
            return False
        await answer(wire)
        return True

    return fault


def is_list(request: Request) -> bool:
    return not request.is_watch


def is_watch(request: Request) -> bool:
    return request.is_watch


def watches(server: FakeApiServer) -> list[Request]:
    return [one for one in server.requests if one.is_watch]


async def opened(server: FakeApiServer, count: int) -> None:
    """Wait until so many watches have been asked for."""
    await until(lambda: len(watches(server)) >= count)


def names(news: list[News]) -> Iterator[str]:
    for one in news:
        match one:
            case Changed():
                yield f"{one.object.name} {one.object.body.get('spec')}"
            case Removed() | Unreadable():
                yield f"{type(one).__name__} {one.name}"
            case Failing():
                yield type(one.error).__name__
            case _:
                yield type(one).__name__


async def test_present_objects_are_listed_and_changes_are_reported(
    server: FakeApiServer, access: Access
) -> None:
    server.put(SYSTEM, policy(a=1))
    server.put(SYSTEM, policy("group.x"))

    async with watching(access) as watched:
        first = await watched.until(Synced)
        server.put(SYSTEM, policy(a=2))
        second = await watched.until(Changed)
        server.remove(SYSTEM, "default")
        third = await watched.until(Removed)

    assert list(names(first)) == ["default {'a': 1}", "Synced"]
    assert list(names(second)) == ["default {'a': 2}"]
    assert list(names(third)) == ["Removed default"]
    query = server.requests[0].query
    assert query == {"fieldSelector": "metadata.name=default"}
    assert watches(server)[0].query["allowWatchBookmarks"] == "true"


async def test_absence_is_reported_by_the_list(
    server: FakeApiServer, access: Access
) -> None:
    async with watching(access) as watched:
        assert list(names(await watched.until(Synced))) == ["Synced"]
        server.put(SYSTEM, policy())
        await watched.until(Changed)


async def test_a_change_of_the_status_alone_is_not_reported(
    server: FakeApiServer, access: Access
) -> None:
    server.put(SYSTEM, policy(a=1))

    async with watching(access) as watched:
        await watched.until(Synced)
        server.put(SYSTEM, policy(a=1) | {"status": {"nodes": {}}})
        server.put(SYSTEM, policy(a=2))
        news = await watched.until(Changed)

    assert list(names(news)) == ["default {'a': 2}"]


async def test_all_objects_of_a_namespace(
    server: FakeApiServer, access: Access
) -> None:
    server.put(SYSTEM, policy("a"))
    server.put(BALLOONS.path("other"), policy("b"))

    async with watching(access, ALL) as watched:
        await watched.until(Changed, Synced)
        server.put(SYSTEM, policy("c"))
        news = await watched.until(Changed)

    assert list(names(news)) == ["c {}"]
    assert "fieldSelector" not in server.requests[0].query


async def test_of_nodes_only_metadata_is_sent(
    server: FakeApiServer, access: Access
) -> None:
    metadata: dict[str, Any] = {"name": "a", "labels": {"x": "1"}}
    node = {"metadata": metadata, "status": {"images": []}}
    server.put("/api/v1/nodes", node)

    async with watching(access, Target(NODES, "", "a", metadata_only=True)) as watched:
        (first, _) = await watched.until(Changed, Synced)
        server.put("/api/v1/nodes", node | {"status": {"images": [1]}})
        metadata["labels"] = {"x": "2"}
        server.put("/api/v1/nodes", node)
        (second,) = await watched.until(Changed)

    assert isinstance(first, Changed)
    assert isinstance(second, Changed)
    assert (first.object.labels, second.object.labels) == ({"x": "1"}, {"x": "2"})
    accept = [request.headers["accept"] for request in server.requests]
    assert "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" in accept[0]
    assert "as=PartialObjectMetadata;g=meta.k8s.io;v=v1" in accept[1]


async def test_a_kind_that_is_not_installed(
    server: FakeApiServer, access: Access
) -> None:
    server.kinds.clear()

    async with watching(access) as watched:
        (news,) = await watched.until(Failing)
        assert isinstance(news, Failing)
        assert isinstance(news.error, KindMissing)
        server.kinds.add("config.nri/balloonspolicies")
        later = await watched.until(Synced, Recovered)

    assert list(names(later)) == ["Synced", "Recovered"]
    # It is not asked for again and again: the group's kinds are looked at instead.
    assert all(30 <= pause <= 60 for pause in watched.pauses)
    assert sum("balloonspolicies" in one.path for one in server.requests) == 3


@pytest.mark.parametrize(("wanted", "verb"), [(is_list, "list"), (is_watch, "watch")])
async def test_a_right_that_is_missing(
    server: FakeApiServer,
    access: Access,
    wanted: Callable[[Request], bool],
    verb: str,
) -> None:
    async def forbid(wire: Wire) -> None:
        await wire.answer(403, status(403, "Forbidden", "User cannot do that"))

    server.faults = [only(wanted, forbid)] * 12

    async with watching(access) as watched:
        news = await watched.until(Failing, Recovered)

    # Once, though it was seen twelve times.
    failures = [one.error for one in news if isinstance(one, Failing)]
    assert len(failures) == 1
    assert isinstance(failures[0], Forbidden)
    assert f'resourceNames: ["default"], verbs: ["{verb}"]' in str(failures[0])
    # Soon at first: a server that has just started has not read its rules yet.
    assert all(pause <= 2**number for number, pause in enumerate(watched.pauses[:9]))
    assert all(240 <= pause <= 360 for pause in watched.pauses[9:12])
    assert len(watched.pauses) >= 12


async def test_a_server_that_has_just_started(
    server: FakeApiServer, access: Access
) -> None:
    async def busy(wire: Wire) -> None:
        text = b"Too many requests, please try again later.\n"
        await wire.answer(429, text, {"retry-after": "1"})

    server.faults = [only(is_watch, busy)]

    async with watching(access) as watched:
        news = await watched.until(Synced)
        await opened(server, 2)

    assert list(names(news)) == ["Synced"]
    assert 1.0 <= watched.pauses[0] <= 2.0


async def test_a_server_that_stays_busy_is_reported(
    server: FakeApiServer, access: Access
) -> None:
    async def busy(wire: Wire) -> None:
        await wire.answer(429, b"", {"retry-after": "20"})

    server.faults = [only(is_watch, busy)] * 3

    async with watching(access) as watched:
        news = await watched.until(Failing, Recovered)

    assert list(names(news)) == ["Synced", "ServerFailed", "Recovered"]
    assert all(pause >= 20 for pause in watched.pauses)


async def test_an_expired_version(server: FakeApiServer, access: Access) -> None:
    server.put(SYSTEM, policy("a"))
    server.put(SYSTEM, policy("b"))

    async def compact(wire: Wire) -> None:
        # Between list and watch: an object goes, another one comes, all is forgotten.
        server.remove(SYSTEM, "a")
        server.put(SYSTEM, policy("c"))
        server.compact()
        await wire.begin()
        await wire.piece(line("ERROR", status(410, "Expired", "too old")))
        await wire.piece(b"")

    server.faults = [only(is_watch, compact)]

    async with watching(access, ALL) as watched:
        news = await watched.until(Synced, Synced)

    assert list(names(news)) == [
        "a {}",
        "b {}",
        "Synced",
        "c {}",
        "Removed a",
        "Synced",
    ]
    assert not watched.pauses


async def test_a_bookmark_is_where_the_next_watch_begins(
    server: FakeApiServer, access: Access
) -> None:
    async def mark(wire: Wire) -> None:
        server.version = 5000
        await wire.begin()
        metadata = {"resourceVersion": "5000", "creationTimestamp": None}
        await wire.piece(line("BOOKMARK", {"metadata": metadata, "spec": {}}))
        await wire.piece(b"")

    server.faults = [only(is_watch, mark)]

    async with watching(access) as watched:
        await watched.until(Synced)
        await opened(server, 2)

    assert watches(server)[1].query["resourceVersion"] == "5000"


async def test_the_client_chooses_when_a_watch_ends(
    server: FakeApiServer, access: Access
) -> None:
    async def end(wire: Wire) -> None:
        await wire.begin()
        await wire.piece(b"")

    server.faults = [only(is_watch, end)] * 4

    async with watching(access) as watched:
        await watched.until(Synced)
        await opened(server, 5)

    asked = [int(one.query["timeoutSeconds"]) for one in watches(server)]
    assert all(300 <= seconds <= 600 for seconds in asked)
    assert len(set(asked)) > 1
    # These ended too early, so each is asked for later than the one before, at random.
    ends = (1.0, 2.0, 4.0, 8.0)
    assert all(pause <= end for pause, end in zip(watched.pauses, ends, strict=False))
    assert len(server.requests) == 6  # no list after the first


async def test_a_peer_that_is_silent(server: FakeApiServer, access: Access) -> None:
    async def be_silent(_: Wire) -> None:
        await asyncio.sleep(3600)

    # Those of watches are too long to wait for: test_watch_machine.py has them.
    transport = Transport(access, Credentials(access))
    server.faults = [only(is_list, be_silent)]
    with pytest.raises(Unreachable, match=r"none within 0\.2 s"):
        await transport.send(Call(SYSTEM, deadline=0.2))
    await transport.close()


async def test_a_watch_of_a_silent_peer_ends(
    server: FakeApiServer, access: Access
) -> None:
    transport = Transport(access, Credentials(access))
    loop = asyncio.get_running_loop()
    server.put(SYSTEM, policy())
    query = {"watch": "true", "resourceVersion": "1"}

    async with transport.open(Call(SYSTEM, query)) as opened:
        assert b"ADDED" in await next_piece(opened, loop.time() + 60)
        assert await next_piece(opened, loop.time() + 0.2) == b""

    await transport.close()


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
async def test_events_are_cut_anywhere(
    server: FakeApiServer, access: Access, size: int
) -> None:
    def event(number: int) -> bytes:
        metadata = {
            "name": "default",
            "uid": "u",
            "generation": number,
            "resourceVersion": str(1000 + number),
        }
        return line("MODIFIED", {"metadata": metadata, "spec": {"text": "ä€\n"}})

    async def chop(wire: Wire) -> None:
        stream = b"".join(map(event, range(1, 5)))
        await wire.begin()
        for begin in range(0, len(stream), size):
            await wire.piece(stream[begin : begin + size])
            await asyncio.sleep(0)
        await asyncio.sleep(3600)

    server.faults = [only(is_watch, chop)]

    async with watching(access) as watched:
        news = await watched.until(Synced, *[Changed] * 4)

    found = [one.object for one in news if isinstance(one, Changed)]
    assert [one.generation for one in found] == [1, 2, 3, 4]
    assert {one.body["spec"]["text"] for one in found} == {"ä€\n"}


async def test_a_watch_that_is_cut_within_an_event(
    server: FakeApiServer, access: Access
) -> None:
    async def cut(wire: Wire) -> None:
        server.put(SYSTEM, policy(a=1))
        await wire.begin()
        await wire.piece(b'{"type":"ADDED","object":{"metadata":{"na')
        wire.writer.transport.abort()

    server.faults = [only(is_watch, cut)]

    async with watching(access) as watched:
        news = await watched.until(Synced, Changed)

    assert list(names(news)) == ["Synced", "default {'a': 1}"]


async def test_a_token_that_was_rotated(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    server.tokens = {"second"}
    (tmp_path / "token").write_text("first")

    async with watching(access) as watched:
        (news,) = await watched.until(Failing)
        assert isinstance(news, Failing)
        assert isinstance(news.error, Unauthorized)
        (tmp_path / "token").write_text("second")
        assert list(names(await watched.until(Recovered))) == ["Synced", "Recovered"]

    assert watched.pauses[0] <= 1.0


async def test_a_token_rotated_between_requests_is_not_reported(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    async def refuse(wire: Wire) -> None:
        (tmp_path / "token").write_text("second")
        await wire.answer(401, status(401, "Unauthorized", "Unauthorized"))

    server.faults = [only(is_watch, refuse)]

    async with watching(access) as watched:
        news = await watched.until(Synced)
        await opened(server, 2)

    assert list(names(news)) == ["Synced"]
    assert not watched.pauses
    assert watches(server)[1].headers["authorization"] == "Bearer second"


async def test_a_long_outage_of_the_server_is_reported_once(
    server: FakeApiServer, access: Access
) -> None:
    server.put(SYSTEM, policy("a"))
    async with watching(access, ALL) as watched:
        await watched.until(Synced)
        await opened(server, 1)
        await server.__aexit__()
        (news,) = await watched.until(Failing)
        await until(lambda: len(watched.pauses) >= 12)
        assert not watched.news  # once
        server.remove(SYSTEM, "a")
        server.compact()
        async with server:
            later = await watched.until(Removed, Synced)

    assert isinstance(news, Failing)
    assert isinstance(news.error, Unreachable)
    # The watch works before it says that its version has expired.
    assert list(names(later)) == ["Recovered", "Removed a", "Synced"]
    ends = [min(300.0, 2.0**number) for number in range(len(watched.pauses))]
    assert all(pause <= end for pause, end in zip(watched.pauses, ends, strict=True))


async def test_a_server_that_is_not_an_api_server_is_reported(
    server: FakeApiServer, access: Access
) -> None:
    async def portal(wire: Wire) -> None:
        await wire.answer(200, b"<html>log in</html>")

    server.faults = [only(is_list, portal), only(is_watch, portal)]

    async with watching(access) as watched:
        first = await watched.until(Failing, Synced)

    assert list(names(first))[:2] == ["BadAnswer", "Synced"]


async def test_an_object_that_is_too_large(
    server: FakeApiServer, access: Access
) -> None:
    server.put(SYSTEM, policy("small"))
    server.put(SYSTEM, policy("large", text="x" * MOST_BYTES))

    async with watching(access, ALL) as watched:
        first = await watched.until(Changed, Unreadable, Synced)
        await opened(server, 1)
        server.put(SYSTEM, policy("late", text="y" * MOST_BYTES))
        second = await watched.until(Unreadable)
        server.put(SYSTEM, policy("late", text="z"))
        third = await watched.until(Changed)

    assert list(names(first)) == ["small {}", "Unreadable large", "Synced"]
    assert list(names(second)) == ["Unreadable late"]
    assert list(names(third))[-1] == "late {'text': 'z'}"
    (error,) = [one.error for one in second if isinstance(one, Unreadable)]
    assert isinstance(error, TooLarge)
    assert "late in namespace kube-system is larger than 2 MiB" in str(error)


async def test_a_list_that_is_too_large_comes_in_smaller_parts(
    server: FakeApiServer, access: Access
) -> None:
    for number in range(12):
        server.put(SYSTEM, policy(f"n{number}", text="x" * (MOST_BYTES // 2)))

    async with watching(access, ALL) as watched:
        news = await watched.until(Synced)

    assert len(news) == 13
    limits = [int(one.query["limit"]) for one in server.requests if is_list(one)]
    assert limits[0] == 250
    assert limits[-1] == 3


async def test_a_storm_of_changes(server: FakeApiServer, access: Access) -> None:
    async with watching(access) as watched:
        await watched.until(Synced)
        for number in range(200):
            server.put(SYSTEM, policy(number=number))
            await asyncio.sleep(0)
        await until(lambda: any("199" in one for one in names(watched.news)))

    found = [one.object.generation for one in watched.news if isinstance(one, Changed)]
    assert all(before < after for before, after in pairwise(found))
    assert len(server.requests) == 2


async def test_another_error_is_reported_again(
    server: FakeApiServer, access: Access
) -> None:
    async def fail(wire: Wire) -> None:
        await wire.answer(500, json.dumps({"message": "etcd is away"}).encode())

    async def busy(wire: Wire) -> None:
        await wire.answer(503, b"")

    server.faults = [only(is_list, fail), only(is_list, fail), only(is_list, busy)]

    async with watching(access) as watched:
        news = await watched.until(Failing, Failing, Recovered)

    errors = [one.error for one in news if isinstance(one, Failing)]
    assert [one.status for one in errors if isinstance(one, ServerFailed)] == [500, 503]
    assert not any(isinstance(one, BadAnswer) for one in errors)
