"""The agent between an API server and a real daemon: documents in, reports out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import random

import attrs
import pytest

from nri_resmgr.agent.api import Access
from nri_resmgr.agent.configuration import (
    CONFIG_MAP_SOURCE,
    ConfigScope,
    ConfigSource,
    custom_resources,
)
from nri_resmgr.agent.object_status import MOST_NODES
from nri_resmgr.agent.options import AgentOptions
from nri_resmgr.control.client import Client
from nri_resmgr.spool import CONFIGURATION, decode
from tests.agent.adjusted import KIND, PATH, adjustment, entries_of
from tests.agent.agent_task import agent_task
from tests.agent.fake_api_server import FakeApiServer, Json
from tests.daemon.test_control import ask, at_work, socket_in
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

NODE, NAMESPACE = "node-a", "kube-system"
NODES = "/api/v1/nodes"
STATIC = f"/apis/config.nri/v1alpha1/namespaces/{NAMESPACE}/staticpolicies"
BALLOONS = f"/apis/config.nri/v1alpha1/namespaces/{NAMESPACE}/balloonspolicies"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
KINDS = {
    "/nodes",
    "/configmaps",
    "config.nri/staticpolicies",
    "config.nri/balloonspolicies",
    "config.nri/noderesourcemanagers",
    "events.k8s.io/events",
}


def policy(name: str, cpu: str, kind: str = "StaticPolicy") -> Json:
    return {
        "apiVersion": "config.nri/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        # A container has exclusive CPUs, which another policy may not keep.
        "spec": {"reservedResources": {"cpu": cpu}, "allowLoss": True},
    }


@attrs.define(eq=False)
class Cluster:
    """An API server, a node's daemon, and the agent between them."""

    server: FakeApiServer
    folder: Path

    def status(self) -> Json:
        """The node's object, as far as there is one."""
        key = ("config.nri/noderesourcemanagers", "", NODE)
        found: Json = self.server.objects.get(key, {}).get("status", {})
        return found

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        for one in self.status().get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def entry(self, kind: str, name: str) -> Json:
        """The node's entry in the status of an object."""
        body = self.server.objects.get((f"config.nri/{kind}", NAMESPACE, name), {})
        found: Json = body.get("status", {}).get("nodes", {}).get(NODE)
        return found or {}

    def events(self) -> list[Json]:
        """All events of Kubernetes."""
        return [
            body
            for (kind, *_), body in self.server.objects.items()
            if kind == "events.k8s.io/events"
        ]

    def spooled(self) -> str:
        """Name of the object in the spool."""
        path = self.folder / "spool" / CONFIGURATION
        return decode(path.read_bytes()).header.name if path.exists() else ""


@asynccontextmanager
async def agent_of(
    cluster: Cluster,
    access: Access,
    source: ConfigSource,
    chance: Callable[[], float] = random,
) -> AsyncIterator[None]:
    """Run an agent in this process."""
    options = AgentOptions(
        scope=ConfigScope(NODE, NAMESPACE, source),
        spool=cluster.folder / "spool",
        control_socket=str(socket_in(cluster.folder)),
    )
    async with agent_task(access, options, chance):
        yield


@pytest.fixture
async def cluster(server: FakeApiServer, tmp_path: Path) -> AsyncIterator[Cluster]:
    """A cluster whose node has a daemon, and no agent yet."""
    server.kinds = set(KINDS)
    server.put(NODES, {"metadata": {"name": NODE}})
    (tmp_path / "spool").mkdir(0o755)
    async with at_work(tmp_path, "--spool", str(tmp_path / "spool")):
        yield Cluster(server, tmp_path)


RESOURCES = custom_resources(["StaticPolicy", "BalloonsPolicy"])


async def test_an_applied_document_is_in_force_and_reported(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.status().get("policy") == "StaticPolicy")
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await until(lambda: cluster.entry("staticpolicies", "default"))

        assert cluster.status()["observed"]["name"] == "default"
        assert cluster.status()["cpus"]["online"] == 8
        assert cluster.condition("ConfigurationApplied")[:2] == ("True", "Accepted")
        assert cluster.condition("RuntimeConnected")[:2] == ("True", "Synchronized")
        entry = cluster.entry("staticpolicies", "default")
        assert (entry["status"], entry["generation"]) == ("Success", 1)
        assert "errors" not in entry


async def test_levels_and_labels_choose_the_object(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.spooled() == "default")
        labels = {"config.nri/group": "fast"}
        cluster.server.put(NODES, {"metadata": {"name": NODE, "labels": labels}})
        await until(lambda: cluster.condition("ConfigurationApplied")[1] != "Accepted")
        assert cluster.spooled() == "default"  # none has the group's name
        cluster.server.put(STATIC, policy("group.fast", "cpuset:2"))
        await until(lambda: cluster.spooled() == "group.fast")
        # The entry in the object before is removed.
        await until(lambda: cluster.entry("staticpolicies", "group.fast"))
        await until(lambda: not cluster.entry("staticpolicies", "default"))
        cluster.server.put(STATIC, policy(f"node.{NODE}", "cpuset:1"))
        await until(lambda: cluster.spooled() == f"node.{NODE}")
        cluster.server.remove(STATIC, f"node.{NODE}")
        await until(lambda: cluster.spooled() == "group.fast")
        cluster.server.put(NODES, {"metadata": {"name": NODE}})
        await until(lambda: cluster.spooled() == "default")


async def test_a_mistake_is_reported_and_the_old_one_stays(
    cluster: Cluster, access: Access
) -> None:
    name = f"node.{NODE}"
    cluster.server.put(STATIC, policy(name, "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[0] == "True")
        wrong = policy(name, "cpuset:3")
        wrong["spec"]["preserved"] = 1
        cluster.server.put(STATIC, wrong)
        await until(lambda: cluster.condition("Ready")[1] == "Rejected")

        assert "$.spec.preserved: unknown key" in cluster.condition("Ready")[2]
        await until(
            lambda: cluster.entry("staticpolicies", name).get("generation") == 2
        )
        assert cluster.entry("staticpolicies", name)["status"] == "Failure"
        assert cluster.status()["policy"] == "StaticPolicy"

        cluster.server.put(STATIC, policy(name, "cpuset:2"))
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await until(
            lambda: cluster.entry("staticpolicies", name).get("status") == "Success"
        )


async def test_a_dry_run_of_a_document_reports_the_changes_it_would_make(
    cluster: Cluster, access: Access
) -> None:
    name = f"node.{NODE}"
    cluster.server.put(STATIC, policy(name, "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[1] == "Working")
        tried = policy(name, "cpuset:2", "StaticPolicy")
        tried["spec"]["mode"] = "DryRun"
        cluster.server.put(STATIC, tried)
        await until(lambda: cluster.condition("ConfigurationApplied")[1] == "DryRun")

        assert cluster.status()["mode"] == "DryRun"
        events = (await ask(cluster.folder, "events", "-o", "json")).stdout
        rows = [json.loads(line) for line in events.splitlines()]
        (trial,) = (one for one in rows if one["kind"] == "configuration.tried")
        assert trial["title"] == f"StaticPolicy {NAMESPACE}/{name}"
        assert trial["why"].startswith("would change ")
        assert "would change" in cluster.condition("ConfigurationApplied")[2]
        assert cluster.condition("Ready")[0] == "True"
        tried["spec"]["mode"] = "Enforce"
        cluster.server.put(STATIC, tried)
        await until(lambda: cluster.status()["mode"] == "Enforce")


async def test_two_kinds_are_refused_until_one_is_deleted(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[0] == "True")
        cluster.server.put(BALLOONS, policy("default", "1", "BalloonsPolicy"))
        await until(lambda: cluster.condition("Ready")[1] == "SeveralKinds")
        assert cluster.status()["policy"] == "StaticPolicy"
        cluster.server.remove(STATIC, "default")
        await until(lambda: cluster.status()["policy"] == "BalloonsPolicy")


async def test_a_deleted_object_stays_in_force_and_that_is_shown(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[0] == "True")
        cluster.server.remove(STATIC, "default")
        await until(
            lambda: cluster.condition("ConfigurationApplied")[1] == "ConfigurationGone"
        )
        assert cluster.status()["policy"] == "StaticPolicy"


async def test_a_refusal_is_an_event_on_the_pod(
    cluster: Cluster, access: Access
) -> None:
    async with agent_of(cluster, access, RESOURCES):
        await until(cluster.events)

    (event,) = cluster.events()
    assert (event["reason"], event["type"]) == ("ResourcesRefused", "Warning")
    assert event["regarding"]["name"] == "huge"
    assert event["note"].startswith(f"node {NODE}: ")
    assert "asks for 64 exclusive CPUs" in event["note"]
    # An agent that starts again finds it there.
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await asyncio.sleep(2.0)
    assert len(cluster.events()) == 1


async def test_adjustments_are_reported_in_them_and_by_the_node(
    cluster: Cluster, access: Access
) -> None:
    amounts = {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}
    why = "$.spec.resources.requests.cpu: exceeds $.spec.resources.limits.cpu"
    full, room = entries_of(MOST_NODES), entries_of(MOST_NODES - 1)
    cluster.server.kinds.add(KIND)
    cluster.server.put(PATH, adjustment("full", entries=full, resources=amounts))
    cluster.server.put(PATH, adjustment("room", entries=room))

    def entries(name: str) -> Json:
        body = cluster.server.objects[KIND, NAMESPACE, name]
        found: Json = body["status"]["nodes"]
        return found

    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("AdjustmentsApplied")[1] == "Rejected")
        await until(lambda: NODE in entries("room"))

        ignored = entries("room")[NODE]["errors"]["request"]
        assert "the whole update is ignored because of full" in ignored
        assert f"full: {why}" in cluster.condition("AdjustmentsApplied")[2]
        # It came first, and had no room.
        assert entries("full") == full

        for name in ("full", "room"):
            cluster.server.remove(PATH, name)
        await until(lambda: not cluster.condition("AdjustmentsApplied")[0])


async def test_a_node_waits_before_it_reports_an_adjustment_for_all_nodes(
    cluster: Cluster, access: Access
) -> None:
    def entry(name: str) -> object:
        body = cluster.server.objects[KIND, NAMESPACE, name]
        return body.get("status", {}).get("nodes", {}).get(NODE)

    def for_no_container(name: str, nodes: list[str]) -> Json:
        none = {"key": "name", "operator": "In", "values": ["none"]}
        found = adjustment(name)
        found["spec"]["scope"] = [{"nodes": nodes, "containers": [none]}]
        return found

    def judged() -> list[str]:
        found = Client(str(socket_in(cluster.folder))).get("/v1/cluster")
        return [one["object"]["name"] for one in found["adjustments"]["objects"]]

    cluster.server.kinds.add(KIND)
    async with agent_of(cluster, access, RESOURCES, lambda: 1.0):
        await until(lambda: cluster.condition("ConfigurationApplied")[0] == "True")
        cluster.server.put(PATH, for_no_container("mine", [NODE]))
        await until(lambda: entry("mine") == {"errors": {}})
        await until(lambda: cluster.condition("AdjustmentsApplied")[0] == "True")
        cluster.server.put(PATH, for_no_container("wide", []))
        async with asyncio.timeout(60):
            while await asyncio.to_thread(judged) != ["mine", "wide"]:  # noqa: ASYNC110 - of a process
                await asyncio.sleep(0.05)
        await asyncio.sleep(2.0)

        # It is in force, and neither object says so yet.
        assert entry("wide") is None
        assert cluster.condition("AdjustmentsApplied")[2] == "in force: mine"
        await until(lambda: entry("wide") == {"errors": {}})
        await until(
            lambda: cluster.condition("AdjustmentsApplied")[2] == "in force: mine, wide"
        )


async def test_nothing_is_written_without_a_change(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.entry("staticpolicies", "default"))
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await until(cluster.events)
        await asyncio.sleep(3.0)
        before = len(cluster.server.requests)
        await asyncio.sleep(5.0)

    assert len(cluster.server.requests) == before
    writes = [one for one in cluster.server.requests if one.method != "GET"]
    # The node's object, its status as it changes at the start, the entry, the event.
    assert len(writes) <= 8


async def test_a_document_that_could_not_be_written_is_written_later(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    obstacle = cluster.folder / "spool" / f".{CONFIGURATION}.new"
    obstacle.mkdir()
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: "Ready" in str(cluster.status()))
        await asyncio.sleep(2.0)
        assert cluster.spooled() == ""
        obstacle.rmdir()
        await until(lambda: cluster.spooled() == "default")


async def test_labels_and_annotations_of_an_object_change_nothing(
    cluster: Cluster, access: Access
) -> None:
    """Only the specification counts, and no label chooses an object."""
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await until(lambda: cluster.entry("staticpolicies", "default"))
        await until(cluster.events)
        await asyncio.sleep(2.0)
        path = cluster.folder / "spool" / CONFIGURATION
        before, asked = path.stat().st_mtime_ns, len(cluster.server.requests)
        found = policy("default", "cpuset:3")
        found["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}}
        key = ("config.nri/staticpolicies", NAMESPACE, "default")
        found["status"] = cluster.server.objects[key]["status"]
        cluster.server.put(STATIC, found)
        await asyncio.sleep(3.0)

        assert path.stat().st_mtime_ns == before
        assert len(cluster.server.requests) == asked


async def test_config_maps_have_documents_or_sections_of_cri_resource_manager(
    cluster: Cluster, access: Access
) -> None:
    document = (
        "apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\n"
        "spec: {reservedResources: {cpu: 'cpuset:3'}}\n"
    )
    name = "cri-resmgr-config.default"
    body = {"metadata": {"name": name}, "data": {"nri-resmgr.yaml": document}}
    cluster.server.put(CONFIG_MAPS, body)
    async with agent_of(cluster, access, CONFIG_MAP_SOURCE):
        await until(lambda: cluster.status().get("policy") == "StaticPolicy")
        own = "Active: static\nReservedResources: {CPU: cpuset:2}\n"
        data = {"policy": own}
        mine = f"cri-resmgr-config.node.{NODE}"
        cluster.server.put(CONFIG_MAPS, {"metadata": {"name": mine}, "data": data})
        await until(lambda: cluster.status()["observed"]["name"] == mine)
        await until(lambda: cluster.condition("Ready")[1] == "Working")
        assert cluster.status()["observed"]["kind"] == "ConfigMap"


async def test_a_document_changed_during_an_outage_is_applied_after_it(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.put(STATIC, policy("default", "cpuset:3"))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await cluster.server.__aexit__()
        await asyncio.sleep(1.0)
        await cluster.server.__aenter__()
        cluster.server.put(STATIC, policy(f"node.{NODE}", "cpuset:1"))
        await until(lambda: cluster.spooled() == f"node.{NODE}", within=60)


async def test_a_node_that_is_deleted_takes_its_entries_with_it(
    cluster: Cluster, access: Access
) -> None:
    def entry(kind: str, name: str) -> object:
        body = cluster.server.objects[kind, NAMESPACE, name]
        return body.get("status", {}).get("nodes", {}).get(NODE)

    def has_entries() -> bool:
        shared = entry("config.nri/staticpolicies", "default")
        return shared is not None and entry(KIND, "mine") is not None

    key = ("config.nri/noderesourcemanagers", "", NODE)
    other = {"status": "Success", "generation": 1}
    body = policy("default", "cpuset:3") | {"status": {"nodes": {"other": other}}}
    cluster.server.kinds.add(KIND)
    cluster.server.put(STATIC, body)
    cluster.server.put(PATH, adjustment("mine", [NODE], entries=entries_of(2)))
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await until(has_entries, within=60)
        cluster.server.remove(NODES, NODE)
        # As Kubernetes does, which knows the owner.
        cluster.server.remove("/apis/config.nri/v1alpha1/noderesourcemanagers", NODE)
        await until(lambda: entry("config.nri/staticpolicies", "default") is None)
        await until(lambda: entry(KIND, "mine") is None)
        # What changes on it now is not reported.
        cluster.server.put(STATIC, policy(f"node.{NODE}", "cpuset:1"))
        await until(lambda: cluster.spooled() == f"node.{NODE}")
        await asyncio.sleep(2.0)

        assert key not in cluster.server.objects
        assert cluster.entry("staticpolicies", f"node.{NODE}") == {}
        shared = cluster.server.objects[
            "config.nri/staticpolicies", NAMESPACE, "default"
        ]
        assert shared["status"]["nodes"] == {"other": other}
        mine = cluster.server.objects[KIND, NAMESPACE, "mine"]
        assert mine["status"]["nodes"] == entries_of(2)

        found = cluster.server.put(NODES, {"metadata": {"name": NODE}})
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await until(lambda: cluster.entry("staticpolicies", f"node.{NODE}"))
        (owner,) = cluster.server.objects[key]["metadata"]["ownerReferences"]
        assert owner["uid"] == found["metadata"]["uid"]


async def test_an_agent_of_a_node_that_the_cluster_has_not_reports_nothing(
    cluster: Cluster, access: Access
) -> None:
    cluster.server.remove(NODES, NODE)
    body = policy("default", "cpuset:3")
    left = {"other": {"status": "Success"}, NODE: {"status": "Success"}}
    cluster.server.put(STATIC, body | {"status": {"nodes": left}})
    async with agent_of(cluster, access, RESOURCES):
        await until(lambda: cluster.spooled() == "default")
        await until(lambda: cluster.entry("staticpolicies", "default") == {})
        await asyncio.sleep(2.0)
        assert cluster.status() == {}
        cluster.server.put(NODES, {"metadata": {"name": NODE}})
        await until(lambda: cluster.condition("Ready")[0] == "True")
        await until(
            lambda: "generation" in cluster.entry("staticpolicies", "default"),
            within=60,
        )
