"""A node with one pod in a virtual machine, whose sandbox has a cgroup."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs

from nri_resmgr.app.running.sandboxes import SandboxPins
from nri_resmgr.scenario.kubelet import ANNOUNCED
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from tests.app.node import asking_for
from tests.running.node import CgroupNode, NodeExtras, cgroup_node
from tests.verification.cgroup_trees import MOUNT, tree_with, v2
from tests.waiting import until

POD = "kubepods/podvm"
KATA = f"{POD}/kata_vm"
ALL = "0-7"
UID = "uid-of-vm"


@attrs.define(eq=False)
class VmNode:
    """A node with one pod, ``vm``."""

    node: CgroupNode
    sandboxes: SandboxPins

    def make_cgroup(self, folder: str = KATA) -> None:
        tree_with(self.node.root, v2(folder, ALL, "0", "100"))

    async def run_pod(
        self, handler: str = "kata-qemu", announced: str = "", overhead: float = 0
    ) -> None:
        linux = LinuxPod(
            cgroup_parent=f"/{POD}",
            cgroups_path=f"/{POD}/vm",
            pod_overhead=asking_for(overhead) if overhead else None,
        )
        await self.node.runtime.run_pod(
            Pod(
                id="vm",
                name="vm",
                uid=UID,
                namespace="shop",
                annotations={ANNOUNCED: announced} if announced else {},
                runtime_handler=handler,
                linux=linux,
            )
        )

    async def create(self, name: str, cpus: float) -> str:
        """Create a container, and return its CPUs."""
        values = LinuxContainer(
            resources=asking_for(cpus), cgroups_path=f"/{POD}/{name}"
        )
        await self.node.runtime.create_container(
            "vm", Container(id=name, name=name, linux=values)
        )
        return self.node.recorded(name)

    def written(self, file: str = "cpuset.cpus", folder: str = KATA) -> str:
        return (self.node.root / MOUNT / folder / file).read_text().strip()

    async def until_at(self, cpus: str) -> None:
        await until(lambda: self.written() == cpus)


@asynccontextmanager
async def vm_node(folder: Path) -> AsyncIterator[VmNode]:
    sandboxes = SandboxPins()
    extras = NodeExtras(observers=(sandboxes,))
    async with cgroup_node(folder, extras=extras) as node:
        running = asyncio.ensure_future(sandboxes.run(node.plugin, node.tree))
        try:
            yield VmNode(node, sandboxes)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
