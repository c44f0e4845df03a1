"""Resizes of containers whose requests the kubelet has reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.testing.kubelet.pods import container, pod, status
from tests.kubelet.node import GIB, Node, running_node
from tests.waiting import until


def guaranteed(cpus: int) -> core.Pod:
    amounts = {"cpu": str(cpus), "memory": "1Gi"}
    return pod("uid-1", container("web", amounts, amounts))


def in_force(desired: core.Pod, cpus: int, allocated: int) -> core.Pod:
    """Return a pod as the kubelet reports it during a resize."""
    amounts = {"cpu": str(cpus), "memory": "1Gi"}
    reserved = (("cpu", str(allocated)), ("memory", "1Gi"))
    found = core.Pod()
    found.CopyFrom(desired)
    found.status.containerStatuses.append(
        status("web", amounts, amounts, allocated=reserved)
    )
    return found


async def started(node: Node, cpus: int) -> core.Pod:
    one = in_force(guaranteed(cpus), cpus, cpus)
    node.service.put(one)
    await until(lambda: "1 pod known" in node.pods.details())
    await node.run(one)
    assert node.has(one, "web", source=RequestOrigin.KUBELET, request=1000 * cpus)
    return one


async def test_a_resize_that_is_only_desired_changes_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        one = await started(node, 2)
        before = node.pinned(one, "web")

        node.service.put(in_force(guaranteed(4), 2, 2))
        marker = pod("uid-2", container("web"))
        node.service.put(marker)
        await until(lambda: "2 pods" in node.pods.details())

        assert node.has(one, "web", source=RequestOrigin.KUBELET, request=2000)
        assert node.pinned(one, "web") == before


@pytest.mark.parametrize("first", ["the kubelet", "the runtime"])
async def test_a_resize_is_exact_whichever_comes_first(
    tmp_path: Path, first: str
) -> None:
    async with running_node(tmp_path) as node:
        await started(node, 2)
        allocated = in_force(guaranteed(4), 2, 4)
        origin = RequestOrigin.KUBELET
        if first == "the kubelet":
            node.service.put(allocated, pod("uid-2", container("web")))
            await until(lambda: "2 pods" in node.pods.details())
        else:
            origin = RequestOrigin.KUBELET_RESIZED
        await node.resize(allocated, "web")

        assert node.has(allocated, "web", source=origin, request=4000)
        assert len(node.pinned(allocated, "web").replace("-", ",").split(",")) >= 2

        done = in_force(guaranteed(4), 4, 4)
        node.service.put(done)
        await until(lambda: node.has(done, "web", source=RequestOrigin.KUBELET))

        assert node.has(done, "web", request=4000, limit=4000)


async def test_a_resize_that_no_cgroup_value_shows_follows_the_kubelet(
    tmp_path: Path,
) -> None:
    """The kubelet changes no OOM score for another memory request."""
    async with running_node(tmp_path) as node:

        def burstable(memory: str) -> core.Pod:
            asked = {"cpu": "1", "memory": memory}
            one = pod("uid-1", container("web", asked))
            one.status.containerStatuses.append(status("web", asked))
            return one

        one = burstable("1Gi")
        node.service.put(one)
        await until(lambda: "1 pod known" in node.pods.details())
        await node.run(one)

        node.service.put(burstable("1025Mi"))
        await until(lambda: node.has(one, "web", memory_request=1025 << 20))

        assert node.has(one, "web", source=RequestOrigin.KUBELET)


async def test_allocated_amounts_take_precedence_over_desired_ones(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await started(node, 2)
        # Resized again before the first resize is over.
        node.service.put(in_force(guaranteed(5), 2, 4), pod("uid-2", container("web")))
        await until(lambda: "2 pods" in node.pods.details())
        asked = guaranteed(4)
        await node.resize(asked, "web")

        assert node.has(asked, "web", request=4000, limit=4000)
        assert node.has(asked, "web", source=RequestOrigin.KUBELET)


async def test_a_memory_request_that_the_kubelet_defers_is_not_in_force(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        one = pod("uid-1", container("web", {"cpu": "1", "memory": "1025Mi"}))
        one.status.containerStatuses.append(
            status("web", {"cpu": "1", "memory": "1024Mi"})
        )
        node.service.put(one)
        await until(lambda: "1 pod known" in node.pods.details())
        await node.run(one)

        assert node.has(one, "web", memory_request=1024 << 20)
        assert node.has(one, "web", source=RequestOrigin.KUBELET)


async def test_amounts_that_cgroup_values_contradict_change_nothing(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, "1s1n4c1t") as node:
        one = await started(node, 2)
        before = node.pinned(one, "web")

        huge = in_force(guaranteed(64), 64, 64)
        node.service.put(huge, pod("uid-2", container("web")))
        await until(lambda: "2 pods" in node.pods.details())

        assert node.has(one, "web", request=2000, memory_request=GIB)
        assert node.pinned(one, "web") == before


async def test_the_next_container_of_a_resized_pod_has_the_new_amounts(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        one = await started(node, 2)
        await node.runtime.stop_container("uid-1.web")
        await node.runtime.remove_container("uid-1.web")

        # The status is of the last container until the next one runs.
        waiting = in_force(guaranteed(3), 2, 3)
        node.service.put(waiting, pod("uid-2", container("web")))
        await until(lambda: "2 pods" in node.pods.details())
        await node.create(waiting)

        assert node.has(one, "web", source=RequestOrigin.KUBELET, request=3000)


async def test_a_resize_that_the_node_cannot_grant_is_logged_and_changes_nothing(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, "1s1n4c1t") as node:
        # A score of 3 stands for everything above 99.7 % of the node.
        asked = {"cpu": "1", "memory": str(node.capacity * 2)}
        one = pod("uid-1", container("web", asked))
        await node.run(one)
        before = node.spec(one, "web")
        assert before.source is RequestOrigin.OCI

        with capture_logs() as logs:
            node.service.put(one, pod("uid-2", container("web")))
            await until(lambda: "2 pods" in node.pods.details())

        assert node.spec(one, "web") == before
        assert [line["event"] for line in logs] == ["requests.not-granted"]
