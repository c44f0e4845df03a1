"""Memory classes after the creation: resizes, and limits that are ours to write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.classes.memory import MemoryQosConfig
from nri_resmgr.stub.model import (
    Container,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
)
from nri_resmgr.testing import PluginRefused
from nri_resmgr.testing.cri_service import CreateResult
from tests.app.memory_node import MACHINE, MISC, QOS, SPEC, unified, v2_host
from tests.app.node import Node, running_node


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return v2_host(tmp_path)


def resized(memory: int) -> LinuxResources:
    return LinuxResources(
        cpu=LinuxCpu(2048, 200_000, 100_000), memory=LinuxMemory(limit=memory)
    )


async def present(node: Node, memory: int) -> Mapping[str, str]:
    """Resize the container; return its files as the runtime has them now."""
    await node.runtime.update_container("web", resized(memory))
    found = node.runtime.world.containers["web"].linux.resources.unified
    return dict(found)


async def test_the_class_follows_the_limit(folder: Path) -> None:
    async with running_node(folder, MACHINE, SPEC) as node:
        await node.run("web", 2, {QOS: "bronze"})

        assert [
            await present(node, 1 << 31),
            await present(node, 1 << 28),
        ] == [
            {"memory.high": str(1 << 30), "memory.swap.max": "max"},
            {"memory.high": str(1 << 27), "memory.swap.max": "max"},
        ]


async def test_a_removed_class_does_not_prevent_a_resize(folder: Path) -> None:
    async with running_node(folder, MACHINE, SPEC) as node:
        await node.run("web", 2, {QOS: "bronze"})
        none = msgspec.structs.replace(
            node.plugin.config, memory_qos=MemoryQosConfig({})
        )
        reconfigure(node.plugin, none)
        with capture_logs() as logs:
            found = await present(node, 1 << 31)

    assert found == {"memory.high": str(1 << 29), "memory.swap.max": "max"}
    (logged,) = [one for one in logs if one["event"] == "memory-class.not-applied"]
    assert logged["why"].startswith(
        "default/web/web asks for memory QoS class 'bronze'"
    )


def container_cgroup(folder: Path) -> Path:
    """Make the cgroup of a container, as its runtime would; return its limits."""
    group = folder / "host/sys/fs/cgroup/kubepods/web"
    group.mkdir(parents=True)
    (group / "cgroup.procs").touch()
    (group / "misc.max").touch()
    return group / "misc.max"


async def create_limited(node: Node, *, limits: str) -> CreateResult:
    """Create a container with a cgroup of its own, and start it."""
    await node.run_pod("web", {MISC: limits})
    linux = LinuxContainer(resources=resized(1 << 30), cgroups_path="/kubepods/web")
    container = Container(id="web", name="web", linux=linux)
    created = await node.runtime.create_container("pod-web", container)
    await node.runtime.start_container("web")
    return created


async def test_limits_that_the_runtime_cannot_set_are_written_before_the_start(
    folder: Path,
) -> None:
    limits = container_cgroup(folder)
    async with running_node(folder, MACHINE, SPEC) as node:
        created = await create_limited(node, limits="sev_es 4, sgx_epc 1Mi")

    assert unified(created) == {"misc.max": "sev_es 4"}
    assert limits.read_text() == "sgx_epc 1048576\n"


async def test_a_container_is_not_started_without_its_limits(folder: Path) -> None:
    async with running_node(folder, MACHINE, SPEC) as node:
        with pytest.raises(PluginRefused) as found:
            await create_limited(node, limits="sev_es 4, sgx_epc 1Mi")

    assert found.value.message == (
        "default/web/web cannot be limited as its annotations say: "
        "it has no cgroup /kubepods/web"
    )


async def test_a_limit_that_the_kernel_rejects_refuses_the_container(
    folder: Path,
) -> None:
    container_cgroup(folder).unlink()
    async with running_node(folder, MACHINE, SPEC) as node:
        with pytest.raises(PluginRefused) as found:
            await create_limited(node, limits="sev_es 4, sgx_epc 1Mi")

    assert found.value.message.endswith(
        "/sys/fs/cgroup/kubepods/web/misc.max: 'sgx_epc 1048576': "
        "No such file or directory"
    )
