"""A node of the test runtime with our plugin, and a kubelet with PodResources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs

from nri_proto import NriLevel
from nri_resmgr.app.plugin.changes.claimed_cpus import begin_claims
from nri_resmgr.app.plugin.cpu_claims import DEFAULT_DRIVERS, ClaimTable
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.host.tree import HostTree
from nri_resmgr.kubelet.connection import KubeletConnection, Pauses
from nri_resmgr.kubelet.pod_resources import PodName, PodResources
from nri_resmgr.kubelet.pod_resources_client import PodResourcesClient
from nri_resmgr.kubelet.sockets import POD_RESOURCES
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import CreateResult, Runtime, running_plugin
from nri_resmgr.testing.kubelet.pod_resources import (
    FakeClaim,
    FakeDevice,
    FakePod,
    FakePodResources,
)
from nri_resmgr.testing.kubelet.server import KubeletServer
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.app.node import SAFE, asking_for
from tests.waiting import until

NAME = "90-resource-policy"


def document(kind: str, spec: str) -> str:
    return f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}"


@attrs.define(eq=False)
class KubeletNode:
    """Pods of one container of the same name, Guaranteed, of namespace ``default``."""

    runtime: Runtime
    plugin: ResourcePolicy
    book: PodResources
    kubelet: FakePodResources
    server: KubeletServer

    async def run(  # noqa: PLR0913 - by name
        self,
        name: str,
        cpus: float,
        *,
        devices: tuple[FakeDevice, ...] = (),
        claims: tuple[FakeClaim, ...] = (),
        env: tuple[str, ...] = (),
        annotations: dict[str, str] | None = None,
        knows: bool = True,
    ) -> CreateResult:
        """Run a pod.

        Args:
            name: Of the pod and its container.
            cpus: Its request and limit.
            devices: That the kubelet has given to it.
            claims: Likewise.
            env: Its environment.
            annotations: Of the pod.
            knows: Whether the daemon has the kubelet's answer by the creation.
        """
        self.put(name, devices, claims)
        linux = LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice")
        await self.runtime.run_pod(
            Pod(
                id=f"pod-{name}",
                name=name,
                namespace="default",
                uid=f"uid-{name}",
                annotations=annotations or {},
                linux=linux,
            )
        )
        if knows:
            await until(lambda: self.answer(name) is not None)
        created = await self.runtime.create_container(
            f"pod-{name}",
            Container(
                id=name,
                name=name,
                env=env,
                labels={KUBELET_NAME: name},
                linux=LinuxContainer(resources=asking_for(cpus)),
            ),
        )
        await self.runtime.start_container(name)
        return created

    def put(
        self,
        name: str,
        devices: tuple[FakeDevice, ...] = (),
        claims: tuple[FakeClaim, ...] = (),
    ) -> None:
        """Have the kubelet admit a pod."""
        self.kubelet.put(
            FakePod("default", name, {name: devices}, {name: claims}, (name,))
        )

    async def stop(self, name: str, *, keeps_pod: bool = False) -> None:
        """Stop and remove a container, and its pod."""
        await self.runtime.stop_container(name)
        await self.runtime.remove_container(name)
        if not keeps_pod:
            await self.end_pod(name)

    async def end_pod(self, name: str) -> None:
        """Stop and remove a pod."""
        await self.runtime.stop_pod(f"pod-{name}")
        self.kubelet.drop("default", name)
        await self.runtime.remove_pod(f"pod-{name}")

    def answer(self, name: str) -> object:
        """Return what the daemon knows of a pod."""
        return self.book.of(PodName("default", name), f"uid-{name}")

    def cpus(self, name: str) -> str:
        """Return the CPUs of a container, as the runtime has them; empty for all."""
        cpu = self.runtime.world.containers[name].linux.resources.cpu
        return str(cpu.cpus)

    def granted(self) -> CpuSet:
        """Return all CPUs that containers of the policy have."""
        pins = self.plugin.policy.pins(self.plugin.state)
        return CpuSet.union(one.cpus for one in pins.values())


@asynccontextmanager
async def running_node(  # noqa: PLR0913, PLR0917 - of one place
    folder: Path,
    machine: str = "1s2n4c1t",
    kind: str = "TopologyAwarePolicy",
    spec: str = "{}",
    level: NriLevel = SAFE,
    patience: float = 60.0,
    drivers: tuple[str, ...] = DEFAULT_DRIVERS,
) -> AsyncIterator[KubeletNode]:
    """Start a kubelet, a runtime, and the plugin in this process."""
    kubelet = FakePodResources()
    server = KubeletServer(folder / POD_RESOURCES.socket, kubelet)
    text = document(kind, spec)
    async with (
        Runtime(folder, level) as runtime,
        server,
        running_daemon(folder, runtime, machine, text, patience, drivers) as (
            plugin,
            book,
        ),
    ):
        yield KubeletNode(runtime, plugin, book, kubelet, server)


@asynccontextmanager
async def running_daemon(  # noqa: PLR0913, PLR0917 - of one place
    folder: Path,
    runtime: Runtime,
    machine: str,
    text: str,
    patience: float = 60.0,
    drivers: tuple[str, ...] = DEFAULT_DRIVERS,
    table: ClaimTable | None = None,
    state: KnowsContainers | None = None,
) -> AsyncIterator[tuple[ResourcePolicy, PodResources]]:
    """Run the plugin and its client of the kubelet."""
    book = PodResources(patience)
    options = PluginOptions(pod_resources=book, cpu_drivers=drivers)
    plugin = ResourcePolicy(
        parse_spec(machine),
        parse_config(text),
        tree=HostTree(folder / "host"),
        plugin_options=options,
    )
    if table is not None:
        begin_claims(plugin, table)
    if state is not None:
        plugin.engine.restore_from(lambda _: state)
    connection = KubeletConnection(POD_RESOURCES, folder, Pauses(0.01, 0.05, 0.05))
    client = asyncio.create_task(PodResourcesClient(connection, book).run())
    try:
        async with running_plugin(runtime, plugin, NAME) as stub:
            plugin.use_update_sender(stub.updates)
            yield plugin, book
    finally:
        client.cancel()
        with suppress(asyncio.CancelledError):
            await client
        book.keep_only(())
