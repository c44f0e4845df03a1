"""A node of the test runtime with our plugin on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from nri_proto import NriLevel
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import (
    Container,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Mount,
    Pod,
    Stub,
)
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import CreateResult, Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec

SAFE = NriLevel(0, 12, 1)
"""Its runtimes accept unsolicited updates."""

UNSAFE = NriLevel(0, 12)
"""Its runtimes can dead-lock on these."""

_NAME = "90-resource-policy"


def config(spec: str) -> str:
    return f"apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\nspec: {spec}"


def asking_for(cpus: float) -> LinuxResources:
    return LinuxResources(
        cpu=LinuxCpu(int(cpus * 1024), int(cpus * 100_000), 100_000),
        memory=LinuxMemory(limit=1 << 30),
    )


@attrs.define
class Node:
    """Pods of one container, called by the same name.

    Attributes:
        runs: Where the plugin has its files.
    """

    runtime: Runtime
    plugin: ResourcePolicy
    stub: Stub
    runs: Path

    async def run_pod(self, name: str, annotations: Mapping[str, str] = {}) -> None:
        """Create a Guaranteed pod."""
        linux = LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice")
        await self.runtime.run_pod(
            Pod(
                id=f"pod-{name}",
                name=name,
                namespace="default",
                annotations=annotations,
                linux=linux,
            )
        )

    async def create(
        self, name: str, cpus: float, *mounts: Mount, args: tuple[str, ...] = ()
    ) -> CreateResult:
        """Create the container of a pod."""
        linux = LinuxContainer(resources=asking_for(cpus))
        container = Container(id=name, name=name, linux=linux, mounts=mounts, args=args)
        return await self.runtime.create_container(f"pod-{name}", container)

    async def run(
        self,
        name: str,
        cpus: float,
        annotations: Mapping[str, str] = {},
        args: tuple[str, ...] = (),
    ) -> CreateResult:
        """Create a pod, and create and start its container."""
        await self.run_pod(name, annotations)
        created = await self.create(name, cpus, args=args)
        await self.runtime.start_container(name)
        return created

    async def resize(self, name: str, cpus: float) -> None:
        """Ask for other amounts for a container."""
        await self.runtime.update_container(name, asking_for(cpus))

    def pinned(self, name: str) -> tuple[str, str]:
        """Say where the runtime has a container: CPUs and memory nodes."""
        cpu = self.runtime.world.containers[name].linux.resources.cpu
        return cpu.cpus, cpu.mems

    def published(self, name: str) -> str:
        """Return what a container finds in its file."""
        return (self.runs / "containers" / name / "resources.sh").read_text()

    def folders(self) -> list[str]:
        """Name the containers that have a folder."""
        folder = self.runs / "containers"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@asynccontextmanager
async def running_node(
    folder: Path,
    machine: str = "1s2n4c1t",
    spec: str = "{}",
    level: NriLevel = SAFE,
    plugin_options: Callable[[Path], PluginOptions] = lambda runs: PluginOptions(
        run_dir=str(runs)
    ),
) -> AsyncIterator[Node]:
    """Start a runtime, and the plugin in this process."""
    runs = folder / "run"
    plugin = ResourcePolicy(
        parse_spec(machine),
        parse_config(config(spec)),
        tree=HostTree(folder / "host"),
        plugin_options=plugin_options(runs),
    )
    async with (
        Runtime(folder, level) as runtime,
        running_plugin(runtime, plugin, _NAME) as stub,
    ):
        plugin.use_update_sender(stub.updates)
        yield Node(runtime, plugin, stub, runs)
