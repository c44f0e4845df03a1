"""A node of the test runtime whose kernel has partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs

from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.running.by_cgroup import ByCgroup
from nri_resmgr.app.running.partitions import Partitions
from nri_resmgr.app.running.parts import (
    DELIVERY_TIMES,
    DeliveryParts,
    DeliveryTimes,
)
from nri_resmgr.app.running.units import UnitProperties
from nri_resmgr.host.cgroups.partitions import PartitionJournal, PartitionWriter
from nri_resmgr.host.knobs.files import WritableTree
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.testing import CreateResult, Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from nri_resmgr.values.cpu_weights import weight_for
from tests.app.node import SAFE, asking_for, config
from tests.host.partition_kernel import TOP, PartitionKernel
from tests.running.node import SHORT

IDENTITY = "90-resource-policy"
BY_PARTITION = "{reservedResources: {cpu: 1}, exclusivity: partition}"
BY_CPUSET = "{reservedResources: {cpu: 1}}"


@attrs.define(eq=False)
class PartitionNode:
    """Pods whose cgroups are in a kernel with partitions."""

    runtime: Runtime
    plugin: ResourcePolicy
    delivery: ByCgroup
    kernel: PartitionKernel
    pods: dict[str, str] = attrs.field(factory=dict)

    @property
    def partitions(self) -> Partitions:
        """Return the partitions of the delivery."""
        return self.delivery.partitions

    async def create(
        self,
        name: str,
        cpus: float,
        pod: str = "",
        annotations: Mapping[str, str] = {},
        namespace: str = "shop",
    ) -> CreateResult:
        """Create a container, in a pod of its own unless it is named."""
        if not pod:
            pod = f"pod-{name}"
            await self.runtime.run_pod(
                Pod(id=pod, name=name, namespace=namespace, annotations=annotations)
            )
        if self.kernel.target(f"{TOP}/{self.pod_folder(pod)}") is None:
            self.kernel.make(self.pod_folder(pod))
        path = self.cgroups_path(name, pod)
        linux = LinuxContainer(resources=asking_for(cpus), cgroups_path=path)
        container = Container(id=name, name=name, linux=linux)
        created = await self.runtime.create_container(pod, container)
        self.pods[name] = pod
        for one in created.updates:
            self._follow(one.container_id)
        return created

    def _follow(self, name: str) -> None:
        """Write a container's cgroup as its runtime does after an update."""
        path = f"{TOP}/{self.folder(name, self.pods[name])}/cpuset.cpus"
        if self.kernel.read(path) is not None:
            self.kernel.write(path, str(self.recorded(name)))

    async def start(self, name: str, pod: str = "") -> None:
        """Make the cgroup of a container, and start it."""
        self._make(name, self.folder(name, pod))
        await self.runtime.start_container(name)

    async def start_in_two(self, name: str) -> None:
        """Start a container in a cgroup below its scope, as crun does with systemd."""
        for folder in (self.folder(name), self.inner_folder(name)):
            self._make(name, folder)
        self.kernel.write(f"{TOP}/{self.folder(name)}/cgroup.procs", "")
        await self.runtime.start_container(name)

    def _make(self, name: str, folder: str) -> None:
        self.kernel.make(folder)
        cpu = self.runtime.world.containers[name].linux.resources.cpu
        self.kernel.write(f"{TOP}/{folder}/cpuset.cpus", cpu.cpus)
        self.kernel.write(
            f"{TOP}/{folder}/cpu.weight", str(weight_for(cpu.shares.value))
        )

    async def run(self, name: str, cpus: float, pod: str = "") -> CreateResult:
        """Create and start a container."""
        created = await self.create(name, cpus, pod)
        await self.start(name, pod)
        return created

    async def stop(self, name: str, pod: str = "") -> None:
        """Stop a container; its cgroup goes first."""
        self.kernel.remove(self.folder(name, pod))
        await self.runtime.stop_container(name)
        del self.pods[name]

    def folder(self, name: str, pod: str = "") -> str:
        """Return the cgroup of a container below the top."""
        return f"{self.pod_folder(pod or self.pod_of(name))}/{name}"

    def pod_of(self, name: str) -> str:
        """Return the pod of a container, which is its own unless it was named."""
        return self.pods.get(name, f"pod-{name}")

    def pod_folder(self, pod: str) -> str:
        """Return the cgroup of a pod below the top."""
        return f"k/{pod}"

    def cgroups_path(self, name: str, pod: str) -> str:
        """Return the path of a container's cgroup, as in its OCI spec."""
        return f"/{self.folder(name, pod)}"

    def inner_folder(self, name: str) -> str:
        """Return the cgroup below the scope of a container that crun has started."""
        return f"{self.folder(name)}/container"

    def written(self, name: str, pod: str = "") -> CpuSet:
        """Return the CPUs that are written in the cgroup of a container."""
        path = f"{TOP}/{self.folder(name, pod)}/cpuset.cpus"
        return CpuSet.parse(self.kernel.read(path) or "")

    def effective(self, name: str, pod: str = "") -> CpuSet:
        """Return the CPUs that a container may run on."""
        return self.kernel.effective(self.folder(name, pod))

    def decided(self, name: str) -> CpuSet:
        """Return the CPUs that the policy has decided."""
        pin = self.plugin.wanted(name)
        assert pin is not None
        return pin.cpus

    def recorded(self, name: str) -> CpuSet:
        """Return the CPUs in the runtime's own record."""
        cpu = self.runtime.world.containers[name].linux.resources.cpu
        return CpuSet.parse(cpu.cpus)

    def state(self, name: str, pod: str = "") -> str:
        """Return the state of a container's partition."""
        folder = self.folder(name, pod)
        return self.kernel.read(f"{TOP}/{folder}/cpuset.cpus.partition") or ""


class SystemdPartitionNode(PartitionNode):
    """The same with the cgroup driver ``systemd``."""

    def folder(self, name: str, pod: str = "") -> str:
        """See `PartitionNode.folder`."""
        return f"{self.pod_folder(pod or self.pod_of(name))}/cri-{name}.scope"

    def pod_folder(self, pod: str) -> str:
        """See `PartitionNode.pod_folder`."""
        return f"k.slice/{_slice_of(pod)}"

    def cgroups_path(self, name: str, pod: str) -> str:
        """See `PartitionNode.cgroups_path`."""
        return f"{_slice_of(pod)}:cri:{name}"


def _slice_of(pod: str) -> str:
    # A dash is a level.
    return f"k-{pod.replace('-', '_')}.slice"


@asynccontextmanager
async def systemd_partition_node(
    folder: Path, bus: str
) -> AsyncIterator[SystemdPartitionNode]:
    """Start a runtime with the cgroup driver ``systemd``, whose bus has an address."""
    host = PartitionKernel(CpuSet.parse("0-7"), ("system.slice", "k.slice"))
    text = config(BY_PARTITION)
    units = UnitProperties(host, bus, SHORT, SHORT)
    async with (
        Runtime(folder, SAFE) as runtime,
        partition_plugin(runtime, host, text, units=units) as (plugin, delivery),
    ):
        yield SystemdPartitionNode(runtime, plugin, delivery, host)


@asynccontextmanager
async def partition_node(
    folder: Path, document: str = "", kernel: PartitionKernel | None = None
) -> AsyncIterator[PartitionNode]:
    """Start a runtime, and the plugin in this process."""
    host = kernel or PartitionKernel(CpuSet.parse("0-7"), ("system.slice", "k"))
    text = document or config(BY_PARTITION)
    async with (
        Runtime(folder, SAFE) as runtime,
        partition_plugin(runtime, host, text) as (plugin, delivery),
    ):
        yield PartitionNode(runtime, plugin, delivery, host)


@asynccontextmanager
async def partition_plugin(  # noqa: PLR0913 - three have a default
    runtime: Runtime,
    tree: WritableTree,
    document: str,
    *,
    units: UnitProperties | None = None,
    journal: PartitionJournal | None = None,
    times: DeliveryTimes = DELIVERY_TIMES,
) -> AsyncIterator[tuple[ResourcePolicy, ByCgroup]]:
    """Start the plugin on a host whose kernel has partitions."""
    plugin = ResourcePolicy(
        parse_spec("1s1n8c1t"), parse_config(document), plugin_options=PluginOptions()
    )
    partitions = Partitions(plugin, tree, lambda: PartitionWriter(tree, journal))
    delivery = ByCgroup(plugin, tree, DeliveryParts(partitions, units), times)
    plugin.use_delivery(delivery)
    runs = [delivery.run(), delivery.memory_nodes.run()]
    if units:
        runs.append(units.run(delivery))
    writing = asyncio.gather(*runs, return_exceptions=True)
    try:
        async with running_plugin(runtime, plugin, IDENTITY) as stub:
            plugin.use_update_sender(stub.updates)
            yield plugin, delivery
    finally:
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
