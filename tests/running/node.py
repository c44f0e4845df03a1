"""A node of the test runtime whose containers have cgroups, in a folder."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs

from nri_proto import NriLevel
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.running.by_cgroup import ByCgroup
from nri_resmgr.app.running.partitions import Partitions
from nri_resmgr.app.running.parts import DELIVERY_TIMES, DeliveryParts, DeliveryTimes
from nri_resmgr.app.running.units import UnitProperties
from nri_resmgr.host.cgroups.cpuset_watch import CpusetWatch
from nri_resmgr.host.cgroups.partitions import PartitionWriter
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import CreateResult, Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from nri_resmgr.values.cpu_weights import weight_for
from tests.app.node import SAFE, asking_for, config
from tests.verification.cgroup_trees import MOUNT, V2, tree_with, v2

IDENTITY = "90-resource-policy"
SHORT = 0.05
"""Seconds for which values of units are collected."""
PINNED = (
    "{reservedResources: {cpu: 1}, pinCPU: true, pinMemory: true,"
    " isolationAnnotations: true}"
)


class LoggedTree(WritableHostTree):
    """A tree that keeps the order of its writes.

    Attributes:
        written: Paths and texts.
        errors: Raised by the next writes, one by each.
        seconds: Time that each write takes.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.written: list[tuple[str, str]] = []
        self._held: tuple[str, ...] = ()
        self._gate = threading.Event()
        self.errors: list[Exception] = []
        self.seconds = 0.0
        self.is_held = threading.Event()

    def write(self, path: str, text: str) -> None:
        """Write, and keep what was written."""
        time.sleep(self.seconds)
        if self.errors:
            raise self.errors.pop()
        self._wait_if_held(path)
        super().write(path, text)
        self.written.append((path, text))

    def hold(self, *parts: str) -> None:
        """Have the next read or write of a path with *parts* wait for `release`."""
        self.is_held.clear()
        self._held = parts

    def release(self) -> None:
        """Let the read return what there was, or the write be done."""
        gate, self._gate = self._gate, threading.Event()
        gate.set()

    def read(self, path: str) -> str | None:
        """Read, and wait if a test holds this path."""
        found = super().read(path)
        self._wait_if_held(path)
        return found

    def _wait_if_held(self, path: str) -> None:
        if self._held and all(part in path for part in self._held):
            self._held, gate = (), self._gate
            self.is_held.set()
            gate.wait(30)


@attrs.define(eq=False)
class CgroupNode:
    """Pods of one container, called by the same name, each with a cgroup.

    The folder is no kernel: effective values are those of the last write by a test.
    """

    runtime: Runtime
    plugin: ResourcePolicy
    delivery: ByCgroup
    tree: LoggedTree
    root: Path

    async def create(
        self, name: str, cpus: float, annotations: Mapping[str, str] = {}
    ) -> CreateResult:
        """Create a Guaranteed pod, and its container."""
        parent = LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice")
        pod = Pod(
            id=f"pod-{name}",
            name=name,
            namespace="shop",
            annotations=annotations,
            linux=parent,
        )
        await self.runtime.run_pod(pod)
        linux = LinuxContainer(
            resources=asking_for(cpus), cgroups_path=f"kubepods.slice:cri:{name}"
        )
        container = Container(id=name, name=name, linux=linux)
        return await self.runtime.create_container(pod.id, container)

    def make_cgroup(self, name: str, cpus: str = "") -> None:
        """Make a container's cgroup, as the runtime does before it starts."""
        cpu = self.runtime.world.containers[name].linux.resources.cpu
        weight = str(weight_for(cpu.shares.value or 1024))
        files = v2(self.folder(name), cpus or cpu.cpus, cpu.mems or "0", weight)
        tree_with(self.root, files)

    async def run(self, name: str, cpus: float) -> CreateResult:
        """Create a pod, and create and start its container."""
        created = await self.create(name, cpus)
        self.make_cgroup(name)
        await self.runtime.start_container(name)
        return created

    def record(self, name: str, cpus: str) -> None:
        """Put CPUs into the runtime's record, for the next session."""
        cpu = self.runtime.world.containers[name].linux.resources.cpu
        cpu.cpus, cpu.mems = cpus, "0"

    async def begin_again(self) -> None:
        """Restart the runtime, and wait until the plugin is synchronized."""
        await self.runtime.stop()
        await self.runtime.start()
        await self.runtime.synchronized(IDENTITY)

    async def stop(self, name: str) -> None:
        """Stop a container; its cgroup goes first."""
        shutil.rmtree(self.path(name))
        await self.runtime.stop_container(name)

    def folder(self, name: str) -> str:
        """Return the cgroup of a container below the mount point."""
        return f"kubepods.slice/cri-{name}.scope"

    def path(self, name: str) -> Path:
        """Return the folder of a container's cgroup."""
        return self.root / MOUNT / self.folder(name)

    def cpus(self, name: str) -> str:
        """Return the CPUs that are written in a container's cgroup."""
        return (self.path(name) / "cpuset.cpus").read_text().strip()

    def recorded(self, name: str) -> str:
        """Return the CPUs in the runtime's own record."""
        return self.runtime.world.containers[name].linux.resources.cpu.cpus


@attrs.frozen
class NodeExtras:
    """What else there is on a node.

    Attributes:
        bus: Address of a bus with systemd on it.
        watches: Whether writes of other programs are noticed.
        runtime: Name of the runtime.
        observers: Observers of decisions.
    """

    bus: str = ""
    watches: bool = False
    runtime: str = "containerd"
    observers: tuple[DecisionObserver, ...] = ()


NO_EXTRAS = NodeExtras()


@asynccontextmanager
async def cgroup_node(
    folder: Path,
    machine: str = "1s1n8c1t",
    level: NriLevel = SAFE,
    times: DeliveryTimes = DELIVERY_TIMES,
    extras: NodeExtras = NO_EXTRAS,
) -> AsyncIterator[CgroupNode]:
    """Start a runtime, and the plugin in this process."""
    root = folder / "host"
    tree_with(root, V2)
    tree = LoggedTree(root)
    plugin = ResourcePolicy(
        parse_spec(machine),
        parse_config(config(PINNED)),
        tree=tree,
        plugin_options=PluginOptions(),
        observers=extras.observers,
    )
    async with Runtime(folder, level, name=extras.runtime) as runtime:
        partitions = Partitions(
            plugin, tree, lambda: PartitionWriter(tree, None), "no kernel"
        )
        bus = extras.bus
        units = UnitProperties(tree, bus, SHORT, SHORT) if bus else None
        watch = CpusetWatch(tree) if extras.watches else None
        parts = DeliveryParts(partitions, units, watch)
        delivery = ByCgroup(plugin, tree, parts, times)
        plugin.use_delivery(delivery)
        runs = [_again(delivery.run), _again(delivery.memory_nodes.run)]
        if units:
            runs.append(units.run(delivery))
        running = asyncio.gather(*runs)
        try:
            async with running_plugin(runtime, plugin, IDENTITY) as stub:
                plugin.use_update_sender(stub.updates)
                yield CgroupNode(runtime, plugin, delivery, tree, root)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def cpus(node: CgroupNode, name: str) -> CpuSet:
    """Return the CPUs in a container's cgroup."""
    return CpuSet.parse(node.cpus(name))


def decided(node: CgroupNode, name: str) -> CpuSet:
    """Return the CPUs that were decided for a container."""
    pin = node.plugin.wanted(name)
    assert pin is not None
    return pin.cpus


async def _again(run: Callable[[], Awaitable[None]]) -> None:
    """Run a part, and start it again after a failure, as the supervisor does."""
    while True:
        with suppress(RuntimeError):
            await run()
        await asyncio.sleep(0.1)
