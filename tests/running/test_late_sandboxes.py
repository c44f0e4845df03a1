"""The sandbox of a virtual machine whose pod the kubelet reports once it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nri_resmgr.daemon.pods_api import KubeletPods
from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet.connection import KubeletConnection
from nri_resmgr.kubelet.sockets import PODS_API
from nri_resmgr.policy.events import NO_PIN, RequestOrigin
from nri_resmgr.testing.kubelet.pods import PodsService, container, pod
from nri_resmgr.testing.kubelet.server import KubeletServer
from nri_resmgr.values import CpuSet
from tests.kubelet.node import FAST
from tests.running.vm_node import ALL, UID, VmNode, vm_node
from tests.waiting import until


def vm(**cpus: int) -> core.Pod:
    """Return the pod as the kubelet has it, with its containers."""
    containers = []
    for name, count in cpus.items():
        amounts = {"cpu": str(count), "memory": "1Gi"}
        containers.append(container(name, amounts, amounts))
    return pod(UID, *containers, name="vm", namespace="shop")


def source(node: VmNode, name: str) -> RequestOrigin:
    """Return where the request of a container comes from."""
    return node.node.plugin.state.ledger.entries[name].spec.source


@asynccontextmanager
async def with_kubelet(folder: Path, node: VmNode) -> AsyncIterator[PodsService]:
    """Have a node follow the pods of a kubelet, which has none yet."""
    service = PodsService()
    server = KubeletServer(folder / PODS_API.socket, service)
    await server.start()
    connection = KubeletConnection(PODS_API, folder, FAST)
    pods = KubeletPods(node.node.plugin, connection, lambda: True)
    task = asyncio.create_task(pods.run())
    try:
        await until(lambda: not pods.problem)
        yield service
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait({task})
        await server.stop()


async def test_a_pod_known_late_gets_its_place_before_its_containers(
    tmp_path: Path,
) -> None:
    async with vm_node(tmp_path) as one, with_kubelet(tmp_path, one) as kubelet:
        one.make_cgroup()
        await one.run_pod()
        assert one.written() == ALL
        assert [status.wanted for status in one.sandboxes.statuses()] == [NO_PIN]

        kubelet.put(vm(app=2, db=1))
        await until(lambda: one.written() != ALL)
        early = one.written()
        containers = [await one.create("app", 2), await one.create("db", 1)]

        assert CpuSet.parse(early) == CpuSet.union(map(CpuSet.parse, containers))
        await one.until_at(early)


async def test_a_pod_known_after_its_first_container_is_where_its_containers_are(
    tmp_path: Path,
) -> None:
    async with vm_node(tmp_path) as one, with_kubelet(tmp_path, one) as kubelet:
        one.make_cgroup()
        await one.run_pod()
        app = await one.create("app", 2)
        await one.until_at(app)

        kubelet.put(vm(app=2, db=1))
        await until(lambda: source(one, "app") is RequestOrigin.KUBELET)
        await one.until_at(app)
        db = await one.create("db", 1)

        await one.until_at(f"{CpuSet.parse(app) | CpuSet.parse(db)}")
