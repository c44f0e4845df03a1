"""What a node can grant, in a real API server: made, changed, lost, another's."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import msgspec
import pytest

from nri_resmgr.agent.api import Access, ApiClient
from nri_resmgr.agent.api.credentials import Credentials, Source
from nri_resmgr.agent.api.kinds import MissingKinds
from nri_resmgr.agent.api.transport import Transport
from nri_resmgr.agent.publishing_pace import PublishingPace
from nri_resmgr.agent.topology_publisher import TopologyPublisher
from nri_resmgr.agent.zones import Amounts, NumaNode, Publish, Zones
from tests.deploy.kubectl import MANIFESTS
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import Kubectl, KubectlFailed
from tests.kubernetes.nodes import Node, daemon_of, policy, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

DEFINITION: Final = MANIFESTS / "options/node-resource-topology/definition.yaml"
KIND: Final = "noderesourcetopologies.topology.node.k8s.io"
FAST: Final = PublishingPace(settle=0.05, pause=0.05, look=0.05, again=1.0)


def zones(milli: int, *, force: bool = False) -> Zones:
    return Zones(
        policy="TopologyAwarePolicy",
        synchronized=True,
        publish=Publish(force=force),
        single_node=True,
        nodes=(
            NumaNode(
                0, {"0": 10}, Amounts(4000, 3000, milli), Amounts(1 << 34, 1 << 34, 7)
            ),
        ),
    )


@pytest.fixture
def definition(control_plane: ControlPlane) -> Iterator[None]:
    """The API server has the kind."""
    install(control_plane.kubectl)
    yield
    remove(control_plane.kubectl)


def install(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", DEFINITION)
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", KIND)


def remove(kubectl: Kubectl) -> None:
    kubectl("delete", "crd", KIND, "--ignore-not-found")


@attrs.define(eq=False)
class Daemon:
    """What the daemon of a node answers."""

    zones: Zones | None = None

    async def answer(self) -> Zones | None:
        return self.zones


@asynccontextmanager
async def publishing(node: Node, daemon: Daemon) -> AsyncIterator[TopologyPublisher]:
    """Publish with the agent's rights, and in less time."""
    folder = node.account.mount(node.folder / "mounted")
    url = f"https://127.0.0.1:{node.account.control_plane.port}"
    access = Access(
        server=url,
        ca=Source(path=folder / "ca.crt"),
        token=Source(path=folder / "token"),
    )
    transport = Transport(access, Credentials(access))

    async def soon(_: float) -> None:
        await asyncio.sleep(0.1)

    async with ApiClient(transport, MissingKinds(transport, soon)) as api:
        uid = node.kubectl.get("node", node.name)["metadata"]["uid"]
        publisher = TopologyPublisher(
            api, node.name, daemon.answer, owner=lambda: uid, changed=lambda: None
        )
        publisher.pace = FAST
        task = asyncio.create_task(publisher.run())
        try:
            yield publisher
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def found(node: Node) -> Any:
    try:
        return node.kubectl.get(KIND, node.name)
    except KubectlFailed:
        return {}


def available(node: Node) -> str:
    rows = found(node).get("zones") or [{}]
    (cpu,) = (
        one["available"]
        for one in rows[0].get("resources", [{"name": "cpu", "available": ""}])
        if one["name"] == "cpu"
    )
    return str(cpu)


def reason(publisher: TopologyPublisher) -> str:
    return publisher.publication.reason if publisher.publication else ""


async def test_the_object_is_created_with_its_kind_and_follows_changes(
    node: Node, control_plane: ControlPlane
) -> None:
    remove(control_plane.kubectl)
    daemon = Daemon(zones(3000))
    try:
        async with publishing(node, daemon) as publisher:
            await until(lambda: reason(publisher) == "NoDefinition")
            install(control_plane.kubectl)
            await until(lambda: available(node) == "3")
            assert reason(publisher) == "Published"
            (owner,) = found(node)["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"]) == ("Node", node.name)

            daemon.zones = zones(1500)
            publisher.note_change()
            await until(lambda: available(node) == "1500m")
            version = found(node)["metadata"]["resourceVersion"]
            await asyncio.sleep(2.0)  # applied again meanwhile, which changes nothing
            assert found(node)["metadata"]["resourceVersion"] == version

            node.kubectl("delete", KIND, node.name)
            await until(lambda: available(node) == "1500m")

            daemon.zones = msgspec.structs.replace(zones(0), publish=None)
            publisher.note_change()
            await until(lambda: not found(node))
            assert publisher.publication is None
    finally:
        remove(control_plane.kubectl)


async def test_another_manager_keeps_its_object(node: Node, definition: None) -> None:
    theirs = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node.name},
        "topologyPolicies": ["None"],
        "zones": [{"name": "node-0", "type": "Node"}],
    }
    # As NFD and nri-plugins write theirs: by POST and PUT.
    node.kubectl("create", "-f", "-", stdin=json.dumps(theirs))
    daemon = Daemon(zones(3000))
    async with publishing(node, daemon) as publisher:
        await until(lambda: reason(publisher) == "OtherManager")
        assert found(node)["zones"] == theirs["zones"]
        # Without a wish it is not deleted, either.
        daemon.zones = msgspec.structs.replace(zones(0), publish=None)
        publisher.note_change()
        await until(lambda: publisher.publication is None)
        assert found(node)

        daemon.zones = zones(2000, force=True)
        publisher.note_change()
        await until(lambda: available(node) == "2")
        assert reason(publisher) == "Published"


async def test_a_node_publishes_what_its_daemon_can_grant(
    node: Node, definition: None
) -> None:
    agent = {"nodeResourceTopology": True}
    node.kubectl.apply(policy("default", "cpuset:0", agent=agent))
    async with daemon_of(node), node.agent():
        await until(lambda: available(node))
        await until(lambda: node.condition("TopologyPublished")[0] == "True")
        state = node.state()

    published = found(node)
    assert [one["name"] for one in published["zones"]] == ["node-0", "node-1"]
    # Of CPUs 0 to 7 the first one is reserved, and a container has two.
    assert state["cpus"]["exclusive"]
    counts = [
        int(one["available"])
        for zone in published["zones"]
        for one in zone["resources"]
        if one["name"] == "cpu"
    ]
    assert sum(counts) == 7 - 2
    assert published["zones"][0]["costs"][0] == {"name": "node-0", "value": 10}
