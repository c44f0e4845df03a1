"""A runtime reports that a pod was resized."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import PluginRefused
from tests.app.node import Node, asking_for, running_node
from tests.waiting import until


async def run_pod(node: Node) -> None:
    """Run a pod with 2 CPUs of its own, and two containers without requests."""
    parent = "/kubepods.slice/kubepods-podweb.slice"
    linux = LinuxPod(pod_resources=asking_for(2), cgroup_parent=parent)
    await node.runtime.run_pod(
        Pod(id="p", name="web", namespace="default", linux=linux)
    )
    for name in ("app", "log"):
        values = LinuxContainer(resources=asking_for(2))
        await node.runtime.create_container(
            "p", Container(id=name, name=name, linux=values)
        )


def weight_of(node: Node, name: str) -> int:
    """Return the CPU shares that the runtime has for a container."""
    shares: int = node.runtime.world.containers[name].linux.resources.cpu.shares.value
    return shares


async def test_the_containers_of_a_resized_pod_get_their_parts_at_once(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await run_pod(node)
        before = [weight_of(node, name) for name in ("app", "log")]
        for _ in range(2):  # again, as after an answer that was lost
            await node.runtime.update_pod("p", resources=asking_for(3))
            await until(lambda: weight_of(node, "log") == 1536)

        assert before == [1024, 1024]
        assert weight_of(node, "app") == 1536


async def test_the_runtime_gets_the_reason_of_a_refused_resize(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await run_pod(node)
        with pytest.raises(PluginRefused, match="web/app asks for 8 shared CPU"):
            await node.runtime.update_pod("p", resources=asking_for(16))

        assert weight_of(node, "app") == 1024
        await node.runtime.update_pod("p", resources=asking_for(3))
        await until(lambda: weight_of(node, "log") == 1536)
