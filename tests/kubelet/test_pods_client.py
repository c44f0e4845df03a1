"""The client of the Pods API, against a kubelet that restarts, fails and lies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpclib import Status

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet._gen import pods_pb2 as pb
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.testing.kubelet.pods import GET, WATCH, container, pod
from tests.kubelet.node import Node, running_node
from tests.waiting import until


def tiny(number: int) -> core.Pod:
    """Return a pod whose CPU request only the kubelet knows."""
    return pod(f"uid-{number}", container("web", {"cpu": "1m"}))


async def put(node: Node, *pods: core.Pod) -> None:
    """Report pods, and wait until the last one is known."""
    wanted = known(node) + len(pods)
    node.service.put(*pods)
    await until(lambda: known(node) >= wanted)


def known(node: Node) -> int:
    """Return how many pods the daemon knows."""
    return int(node.pods.details().split()[0])


def is_exact(node: Node, one: core.Pod) -> bool:
    return node.has(one, "web", source=RequestOrigin.KUBELET, request=1)


async def test_absence_is_never_a_removal(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        one = tiny(1)
        await put(node, one)
        await node.sandbox(one)

        # A kubelet of 1.36 lists nothing at first.
        node.service.forget_all()
        await node.server.restart()
        await until(lambda: bool(node.pods.problem))
        await node.known()
        await node.create(one)

        assert is_exact(node, one)


async def test_a_deleted_pod_is_known_until_the_runtime_has_removed_it(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        one = tiny(1)
        await put(node, one)
        await node.sandbox(one)
        node.service.delete("uid-1")
        await put(node, tiny(2))
        await node.create(one)

        assert is_exact(node, one)

        await node.runtime.stop_pod("uid-1")
        await node.runtime.remove_pod("uid-1")
        assert "1 pod known" in node.pods.details()


async def test_a_pod_without_containers_replaces_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        one = tiny(1)
        await put(node, one)
        await node.sandbox(one)
        empty = pod("uid-1").SerializeToString()
        node.service.send(pb.WatchPodsEvent(type=pb.MODIFIED, pod=empty))
        await put(node, tiny(2))
        await node.create(one)

        assert is_exact(node, one)


async def test_a_connection_that_is_lost_during_a_question_is_made_again(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.server.delay = 60.0
        await node.sandbox(tiny(1))  # the kubelet is asked for it
        await until(lambda: node.server.calls[GET] > 0)
        node.server.delay = 0.0
        node.server.drop_connections()
        await until(lambda: node.server.calls[WATCH] > 1)

        await put(node, tiny(2))


async def test_a_young_kubelet_is_asked_again(tmp_path: Path) -> None:
    async with running_node(tmp_path, serves=False) as node:
        node.service.is_young = True
        await node.server.start()
        await until(lambda: "FAILED_PRECONDITION" in node.pods.problem)
        one = tiny(1)
        await node.run(one)
        assert node.spec(one, "web").source is RequestOrigin.OCI

        node.service.is_young = False
        node.service.put(one)

        await until(lambda: is_exact(node, one))
        await node.known()


async def test_a_kubelet_without_the_service_is_no_source(tmp_path: Path) -> None:
    async with running_node(tmp_path, serves=False) as node:
        for method in (GET, WATCH):
            node.server.fail(method, Status.UNIMPLEMENTED)
        await node.server.start()
        await until(lambda: "does not serve v1alpha1.Pods" in node.pods.problem)
        one = tiny(1)
        await node.run(one)
        assert node.spec(one, "web").source is RequestOrigin.OCI

        node.server.recover()
        node.service.put(one)

        await until(lambda: is_exact(node, one))


async def test_missing_pods_are_asked_for_within_the_kubelets_limit(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        pods = [tiny(number) for number in range(40)]
        node.service.loses_events = True
        node.service.put(*pods)
        node.server.fail(GET, Status.RESOURCE_EXHAUSTED, times=5)
        for one in pods:
            await node.run(one)

        await until(lambda: all(is_exact(node, one) for one in pods))
        assert node.server.calls[GET] >= 45


async def test_a_watch_that_was_too_slow_begins_again(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        pods = [tiny(number) for number in range(300)]
        # More than the 100 events that a client may have waiting.
        node.service.put(*pods)
        await until(lambda: node.server.calls[WATCH] > 1)
        await node.known()
        await node.run(pods[299])

        await until(lambda: is_exact(node, pods[299]))


async def test_a_hanging_kubelet_delays_no_decision(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.server.delay = 3600.0
        node.server.drop_connections()
        for number in range(20):
            await node.run(tiny(number))

        found = {node.spec(tiny(number), "web").source for number in range(20)}
        assert found == {RequestOrigin.OCI}


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 1000,
        core.Pod().SerializeToString(),
        pod("", container("web")).SerializeToString(),
        pod("uid-1").SerializeToString(),
        # Nothing of what is known of it.
        pod("uid-1", container("web", {"cpu": "many"})).SerializeToString(),
        pod("uid-1", container("web", {"cpu": "1m"}), name="o").SerializeToString(),
        pod(
            "uid-1", *(container(f"c{n}", {"cpu": "1"}) for n in range(600))
        ).SerializeToString(),
        pod("uid-1", container("w" * 1000, {"cpu": "1"})).SerializeToString(),
        pod("uid-1", container("web"), name="n" * (3 << 20)).SerializeToString(),
    ],
)
async def test_hostile_pods_stop_no_decision(tmp_path: Path, content: bytes) -> None:
    async with running_node(tmp_path) as node:
        node.service.send(pb.WatchPodsEvent(type=pb.ADDED, pod=content))
        await put(node, tiny(2))
        one = pod("uid-1", container("web", {"cpu": "2m"}))
        await node.run(one)
        assert node.spec(one, "web").source in (
            RequestOrigin.OCI,
            RequestOrigin.STALE_KUBELET,
        )

        await node.run(tiny(2))
        assert is_exact(node, tiny(2))


async def test_a_flood_of_events_delays_no_decision(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:

        async def flood() -> None:
            number = 0
            while True:
                node.service.put(tiny(1000 + number % 5000))
                number += 1
                if not number % 50:
                    await asyncio.sleep(0)

        task = asyncio.create_task(flood())
        try:
            for number in range(20):
                await node.run(tiny(number))
        finally:
            task.cancel()
        # Of pods that the runtime does not know, a bounded number is kept.
        assert known(node) <= 20 + 256
