"""What is written of a node: its object, and entries in those that nodes share."""

from __future__ import annotations

import asyncio

import pytest

from nri_resmgr.agent.api import Access, ApiClient, Resource
from nri_resmgr.agent.choice import Chosen, ConfigObject
from nri_resmgr.agent.node_report import Facts
from nri_resmgr.agent.object_status import MOST_NODES
from nri_resmgr.agent.reporter import NodeReporter, ObjectReporter
from nri_resmgr.agent.verdict import Outcome, Verdict
from tests.agent.fake_api_server import FakeApiServer, Json, Request, Wire, status

BALLOONS = Resource(
    "config.nri", "v1alpha1", "balloonspolicies", "BalloonsPolicy", True
)
NAMESPACE = "kube-system"


@pytest.fixture
def shared(server: FakeApiServer) -> Facts:
    """What each node knows: an object that all share is in force."""
    found = server.put(BALLOONS.path(NAMESPACE), {"metadata": {"name": "default"}})
    return facts_of(found)


def facts_of(found: Json, outcome: Outcome = Outcome.ACCEPTED) -> Facts:
    metadata = found["metadata"]
    config = ConfigObject(
        *(BALLOONS.kind, NAMESPACE, metadata["name"], metadata["uid"]),
        *(metadata["generation"], metadata["resourceVersion"], ""),
    )
    return Facts(Chosen(config), config, Verdict(outcome), None)


def reporter_of(api: ApiClient, node: str, chance: float = 0.5) -> ObjectReporter:
    return ObjectReporter(api, node, f"node.{node}", (BALLOONS,), lambda: chance)


def entries(server: FakeApiServer, name: str = "default") -> Json:
    body = server.objects["config.nri/balloonspolicies", NAMESPACE, name]
    found: Json = body.get("status", {}).get("nodes", {})
    return found


def fill(server: FakeApiServer, count: int) -> None:
    nodes = {f"other-{number}": {"status": "Success"} for number in range(count)}
    body: Json = {"metadata": {"name": "default"}, "status": {"nodes": nodes}}
    server.put(BALLOONS.path(NAMESPACE), body)


async def test_nodes_that_write_at_once_leave_no_more_entries_than_there_may_be(
    server: FakeApiServer, access: Access, shared: Facts
) -> None:
    fill(server, MOST_NODES - 3)

    async def report(api: ApiClient, node: str) -> None:
        reporter = reporter_of(api, node, chance=0.001)
        while pause := await reporter.write(shared):  # noqa: ASYNC110 - of the server
            await asyncio.sleep(pause)

    async with ApiClient.open(access) as api, asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(report(api, f"node-{number}"))

    assert len(entries(server)) == MOST_NODES


async def test_an_agent_that_is_started_again_writes_nothing(
    server: FakeApiServer, access: Access, shared: Facts
) -> None:
    own = server.put(BALLOONS.path(NAMESPACE), {"metadata": {"name": "node.a"}})
    async with ApiClient.open(access) as api:
        for facts in (shared, facts_of(own)):
            await reporter_of(api, "a").write(facts)
        version = server.version
        for facts in (shared, facts_of(own)):
            await reporter_of(api, "a").write(facts)

    assert entries(server)["a"]["status"] == "Success"
    assert entries(server, "node.a")["a"]["status"] == "Success"
    assert server.version == version


async def test_a_node_without_room_asks_once(
    server: FakeApiServer, access: Access, shared: Facts
) -> None:
    fill(server, MOST_NODES)
    async with ApiClient.open(access) as api:
        reporter = reporter_of(api, "a")
        for _ in range(3):
            assert not await reporter.write(shared)
        asked = len(server.requests)
        rejected = Facts(
            shared.choice, shared.config, Verdict(Outcome.REJECTED, "no"), None
        )
        await reporter.write(rejected)

    assert asked == 1
    assert len(server.requests) == 2
    assert "a" not in entries(server)


async def test_a_node_that_was_outrun_waits_whatever_changes_meanwhile(
    server: FakeApiServer, access: Access, shared: Facts
) -> None:
    async def change_first(request: Request, wire: Wire) -> bool:
        if request.method != "PATCH":
            return False
        conflict = status(409, "Conflict", "modified", name="default")
        await wire.answer(409, conflict)
        return True

    server.faults.append(change_first)
    async with ApiClient.open(access) as api:
        reporter = reporter_of(api, "a")
        first = await reporter.write(shared)
        asked = len(server.requests)
        second = await reporter.write(shared)

    assert (first, asked) == (5.0, 2)
    assert 0.0 < second <= first
    assert len(server.requests) == asked


async def test_a_deleted_object_is_not_a_failure(
    server: FakeApiServer, access: Access, shared: Facts
) -> None:
    server.remove(BALLOONS.path(NAMESPACE), "default")
    async with ApiClient.open(access) as api:
        reporter = reporter_of(api, "a")
        for _ in range(2):
            assert not await reporter.write(shared)

    assert len(server.requests) == 1


async def test_the_entry_in_the_object_before_is_removed(
    server: FakeApiServer, access: Access, shared: Facts
) -> None:
    own = server.put(BALLOONS.path(NAMESPACE), {"metadata": {"name": "node.a"}})
    async with ApiClient.open(access) as api:
        reporter = reporter_of(api, "a")
        await reporter.write(shared)
        await reporter.write(facts_of(own))

        moved = dict(entries(server)), dict(entries(server, "node.a"))
        # And back, before the daemon has judged a third one.
        third = server.put(BALLOONS.path(NAMESPACE), {"metadata": {"name": "group.g"}})
        await reporter.write(facts_of(third, Outcome.PENDING))
        await reporter.write(facts_of(own))

    assert (list(moved[0]), list(moved[1])) == ([], ["a"])
    assert "a" in entries(server, "node.a")


async def test_a_node_that_is_known_later_owns_its_object(
    server: FakeApiServer, access: Access, shared: Facts
) -> None:
    kind = "config.nri/noderesourcemanagers"
    server.kinds.add(kind)
    async with ApiClient.open(access) as api:
        reporter = NodeReporter(api, "a")
        await reporter.write(shared, "")
        await reporter.write(shared, "uid-of-a")

    metadata = server.objects[kind, "", "a"]["metadata"]
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["uid-of-a"]
