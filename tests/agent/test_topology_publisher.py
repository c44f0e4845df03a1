"""What a node can grant is published after changes, and never over another manager.

Whether real API servers answer so is in `tests/kubernetes/test_node_topology.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import msgspec
import pytest

from nri_resmgr.agent.api import Access, ApiClient
from nri_resmgr.agent.node_topology import NODE_TOPOLOGIES
from nri_resmgr.agent.publication import PUBLISHED, Publication
from nri_resmgr.agent.publishing_pace import PublishingPace
from nri_resmgr.agent.topology_publisher import TopologyPublisher
from nri_resmgr.agent.zones import Amounts, NumaNode, Publish, Zones
from tests.agent.fake_api_server import FakeApiServer, Request, Wire, status
from tests.real_host.patience import patience

PATH = NODE_TOPOLOGIES.path()
FAST = PublishingPace(settle=0.01, pause=0.01, look=0.01, again=3600.0)
ZONES = Zones(
    policy="StaticPolicy",
    synchronized=True,
    publish=Publish(),
    nodes=(NumaNode(0, {"0": 10}, Amounts(4000, 3000, 3000)),),
)
OFF = msgspec.structs.replace(ZONES, publish=None)


def with_available(milli: int) -> Zones:
    node = NumaNode(0, {"0": 10}, Amounts(4000, 3000, milli))
    return msgspec.structs.replace(ZONES, nodes=(node,))


@attrs.define(eq=False)
class Published:
    """A publisher, and the daemon that it asks.

    Attributes:
        zones: What the daemon answers.
        asked: How often it was asked.
        noted: What became of it, each time that it differed.
    """

    api: ApiClient
    server: FakeApiServer
    zones: Zones | None = ZONES
    asked: int = 0
    noted: list[Publication | None] = attrs.Factory(list)
    publisher: TopologyPublisher = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher = TopologyPublisher(
            self.api, "node-a", self.answer, owner=lambda: "uid-a", changed=self.note
        )

    def note(self) -> None:
        self.noted.append(self.publisher.publication)

    async def answer(self) -> Zones | None:
        self.asked += 1
        return self.zones

    async def change(self, zones: Zones | None) -> None:
        """Have the daemon answer something else, and the publisher notice it."""
        self.zones, before = zones, self.asked
        self.publisher.note_change()
        await self.until(lambda: self.asked > before)

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(patience(30)):
            while not condition():  # noqa: ASYNC110 - of a server's objects
                await asyncio.sleep(0.01)

    def object(self) -> dict[str, Any]:
        """The object in the cluster; empty if there is none."""
        for (_, _, name), body in self.server.objects.items():
            if name == "node-a":
                return body
        return {}

    def available(self) -> str:
        if not (found := self.object()):
            return ""
        return str(found["zones"][0]["resources"][0]["available"])

    @property
    def writes(self) -> list[Request]:
        return [one for one in self.server.requests if one.method != "GET"]


@pytest.fixture
def cluster(server: FakeApiServer) -> FakeApiServer:
    """A server that has the kind."""
    server.kinds.add("topology.node.k8s.io/noderesourcetopologies")
    return server


@asynccontextmanager
async def publishing(
    cluster: FakeApiServer, access: Access, zones: Zones | None = ZONES, **pace: float
) -> AsyncIterator[Published]:
    async with ApiClient.open(access) as api:
        found = Published(api, cluster, zones)
        found.publisher.pace = msgspec.structs.replace(FAST, **pace)
        task = asyncio.create_task(found.publisher.run())
        try:
            yield found
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_the_object_is_created_and_owned_by_the_node(
    cluster: FakeApiServer, access: Access
) -> None:
    async with publishing(cluster, access) as found:
        await found.until(lambda: found.object() and found.noted)

    assert found.object()["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "uid-a"}
    ]
    (request,) = found.writes
    assert request.query == {"fieldManager": "nri-resmgr"}  # not forced
    assert [one and one.is_published for one in found.noted] == [True]


async def test_changes_are_written_and_nothing_else(
    cluster: FakeApiServer, access: Access
) -> None:
    async with publishing(cluster, access) as found:
        await found.until(lambda: found.available() == "3")
        await found.change(ZONES)
        await found.change(None)  # the daemon is away: its last numbers stay
        not_known = msgspec.structs.replace(with_available(0), synchronized=False)
        await found.change(not_known)
        await found.change(with_available(1500))
        await found.until(lambda: found.available() == "1500m")

    assert len(found.writes) == 2


async def test_many_changes_are_one_write(
    cluster: FakeApiServer, access: Access
) -> None:
    async with publishing(cluster, access, pause=0.5) as found:
        await found.until(found.object)
        for number in range(40):
            found.zones = with_available(10 * number)
            found.publisher.note_change()
            await asyncio.sleep(0.001)
        await found.until(lambda: found.available() == "390m")

    # More only if this machine takes half a second for some of the changes.
    assert len(found.writes) <= 10


async def test_an_object_deleted_by_hand_is_created_again(
    cluster: FakeApiServer, access: Access
) -> None:
    async with publishing(cluster, access, again=0.05) as found:
        await found.until(found.object)
        cluster.remove(PATH, "node-a")
        await found.until(found.object)


async def test_the_object_of_another_manager_stays(
    cluster: FakeApiServer, access: Access
) -> None:
    async def refuse(request: Request, wire: Wire) -> bool:
        if request.method != "PATCH" or "force" in request.query:
            return False
        why = 'Apply failed with 1 conflict: conflict with "nfd" using v1alpha2: .zones'
        await wire.answer(409, status(409, "Conflict", why, name="node-a"))
        cluster.faults.append(refuse)  # each of them
        return True

    cluster.faults.append(refuse)
    async with publishing(cluster, access) as found:
        await found.until(lambda: found.noted)
        (noted,) = found.noted
        assert noted is not None
        assert (noted.is_published, noted.reason) == (False, "OtherManager")
        assert 'conflict with "nfd"' in noted.why
        await found.change(ZONES)
        assert len(found.writes) == 1  # not again and again
        assert not found.object()

        await found.change(msgspec.structs.replace(ZONES, publish=Publish(force=True)))
        await found.until(found.object)
        # Noted when the answer has arrived.
        await found.until(lambda: found.noted[-1] == PUBLISHED)


@pytest.mark.parametrize("managers", [("nri-resmgr",), ("nri-resmgr", "nfd"), ("nfd",)])
async def test_only_an_object_of_the_agent_is_deleted(
    cluster: FakeApiServer, access: Access, managers: tuple[str, ...]
) -> None:
    fields = [{"manager": one, "fieldsV1": {"f:zones": {}}} for one in managers]
    fields.append({"manager": "kubectl", "fieldsV1": {"f:metadata": {}}})
    metadata = {"name": "node-a", "managedFields": fields}
    cluster.put(PATH, {"metadata": metadata, "zones": []})
    async with publishing(cluster, access, OFF) as found:
        await found.until(lambda: found.server.requests)
        await found.change(OFF)
        await found.change(OFF)

    assert bool(found.object()) == (managers != ("nri-resmgr",))
    assert len([one for one in cluster.requests if one.method == "GET"]) == 1
    assert found.noted == []


@pytest.mark.parametrize("code", [404, 403])
async def test_nodes_that_publish_nothing_need_neither_kind_nor_right(
    server: FakeApiServer, access: Access, code: int
) -> None:
    async def refuse(request: Request, wire: Wire) -> bool:
        await wire.answer(code, status(code, "Forbidden", "no"))
        return True

    server.faults.append(refuse)
    async with publishing(server, access, OFF) as found:
        await found.until(lambda: server.requests)
        await found.change(OFF)
        await found.change(OFF)

    assert len(server.requests) == 1


async def test_a_missing_kind_is_named(server: FakeApiServer, access: Access) -> None:
    async with publishing(server, access) as found:
        await found.until(lambda: found.noted)

    (noted,) = found.noted
    assert noted is not None
    assert noted.reason == "NoDefinition"
    assert "noderesourcetopologies.topology.node.k8s.io" in noted.why
