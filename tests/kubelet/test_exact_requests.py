"""Pods whose requests cgroup values cannot express, by each source and without any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nri_resmgr.app.observers.policy_in_force import snapshot_of
from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.testing.kubelet.pods import container, pod, resources
from tests.kubelet.node import GIB, Node, running_node
from tests.waiting import until

ANNOTATION = "noderesource.dev/resources"


def hard_pod() -> core.Pod:
    """A pod that cgroup values say little about."""
    return pod(
        "uid-1",
        container("log", {"cpu": "2m", "memory": "3Gi"}, restart_policy="Always"),
        container("fetch", {"cpu": "3"}, restart_policy="Never"),
        container(
            "web",
            {"cpu": "1m", "memory": "1234567890"},
            {"memory": "8Gi", "vendor.com/gpu": "2"},
        ),
        container("db", {"cpu": "500m"}, {"cpu": "1500m"}),
        priority=-10,
    )


def annotated(of: core.Pod) -> dict[str, str]:
    """What a webhook writes of it."""

    def amounts(one: core.Container) -> dict[str, object]:
        return {
            "requests": {k: v.string for k, v in one.resources.requests.items()},
            "limits": {k: v.string for k, v in one.resources.limits.items()},
            **({"restartPolicy": "Always"} if one.restartPolicy == "Always" else {}),
        }

    text: dict[str, object] = {
        "containers": {one.name: amounts(one) for one in of.spec.containers},
        "initContainers": {one.name: amounts(one) for one in of.spec.initContainers},
    }
    if of.spec.HasField("resources"):
        text["pod"] = amounts(core.Container(resources=of.spec.resources))
    return {ANNOTATION: json.dumps(text)}


async def run(node: Node, one: core.Pod, source: str) -> None:
    """Run a pod that only *source* knows."""
    if source in ("kubelet", "kubelet, later"):
        node.service.is_young = source == "kubelet, later"
        if source == "kubelet":
            node.service.put(one)
            await until(lambda: "1 pod known" in node.pods.details())
    await node.run(one, annotated(one) if source == "annotation" else {})
    if source == "kubelet, later":
        assert node.spec(one, one.spec.containers[0].name).source == "oci"
        node.service.put(one)
        name = one.spec.containers[-1].name
        await until(lambda: node.spec(one, name).source == "kubelet")


@pytest.mark.parametrize("source", ["kubelet", "kubelet, later", "annotation", "oci"])
async def test_amounts_are_exact_by_each_source(tmp_path: Path, source: str) -> None:
    async with running_node(tmp_path) as node:
        one = hard_pod()
        await run(node, one, source)

        origin = RequestOrigin(source.removesuffix(", later"))
        web, db, log = (node.spec(one, name) for name in ("web", "db", "log"))
        assert {web.source, db.source, log.source} == {origin}
        assert (db.request, db.limit) == (500, 1500)
        # Neither the annotation nor a cgroup value has it.
        known = -10 if origin is RequestOrigin.KUBELET else None
        assert {web.priority, db.priority, log.priority} == {known}
        assert web.memory_limit == 8 * GIB
        if source != "oci":
            assert (web.request, web.memory_request) == (1, 1234567890)
            assert web.extended == {"vendor.com/gpu": 2}
            assert (log.request, log.memory_request) == (2, 3 * GIB)
        else:
            # As docs/requests.md says: up to 2m count as none, a thousandth of the
            # node's memory is lost, and devices are unknown.
            assert (web.request, log.request) == (0, 0)
            assert 0 <= 1234567890 - web.memory_request <= node.capacity // 1000
            assert web.extended == {}


async def test_the_kubelet_counts_before_the_annotation(tmp_path: Path) -> None:
    def asking(devices: str) -> core.Pod:
        limits = {"vendor.com/gpu": devices}
        return pod("uid-1", container("web", {"cpu": "1m"}, limits))

    async with running_node(tmp_path) as node:
        one = asking("2")
        node.service.put(one)
        await until(lambda: "1 pod known" in node.pods.details())
        await node.run(one, annotated(asking("3")))
        web = node.spec(one, "web")

    assert (web.source, web.extended) == (RequestOrigin.KUBELET, {"vendor.com/gpu": 2})


async def test_the_runtime_gets_the_pins_of_exact_amounts(tmp_path: Path) -> None:
    async with running_node(tmp_path, "2s1n4c1t") as node:
        # As cgroup values say it, a thousandth of the node's memory less: it fits.
        memory = node.capacity // 2 + (30 << 20)
        one = pod("uid-1", container("web", {"cpu": "500m", "memory": str(memory)}))
        node.service.is_young = True
        await node.run(one)
        (web,) = node.plugin.state.ledger.entries
        before = node.runtime.container(web).cpu.mems
        node.service.put(one)
        await until(lambda: node.runtime.container(web).cpu.mems == "0-1")

        assert before in ("0", "1")
        assert node.spec(one, "web").memory_request == memory


@pytest.mark.parametrize("source", ["kubelet", "kubelet, later", "annotation"])
async def test_the_pod_is_placed_as_a_whole_before_its_containers(
    tmp_path: Path, source: str
) -> None:
    async with running_node(tmp_path, spec="{placePods: soft}") as node:
        one = hard_pod()
        if source == "kubelet":
            node.service.put(one)
            await until(lambda: "1 pod known" in node.pods.details())
        await node.sandbox(one, annotated(one) if source == "annotation" else {})
        if source == "kubelet, later":
            assert snapshot_of(node.plugin).reservations == ()
            node.service.put(one)
        await until(lambda: snapshot_of(node.plugin).reservations != ())

        expected = snapshot_of(node.plugin).reservations
        assert sorted(each.spec.name for each in expected) == ["db", "log", "web"]
        assert {each.spec.request for each in expected} == {1, 2, 500}


@pytest.mark.parametrize("source", ["kubelet", "kubelet, later", "annotation", "oci"])
async def test_pod_level_resources_are_a_budget(tmp_path: Path, source: str) -> None:
    async with running_node(tmp_path) as node:
        one = pod("uid-1", container("web"), container("log"), container("db"))
        four = {"cpu": "4", "memory": "4Gi"}
        one.spec.resources.CopyFrom(resources(four, four))
        await run(node, one, source)

        found = [node.spec(one, name) for name in ("web", "log", "db")]
        assert [each.request for each in found] == [1333] * 3
        assert all(each.shares_budget for each in found)
        assert found[0].source == source.removesuffix(", later")
