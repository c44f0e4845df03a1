"""A node with the Pods API: pods run on the test runtime as a kubelet runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.daemon.pods_api import KubeletPods
from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet.connection import KubeletConnection, Pauses
from nri_resmgr.kubelet.sockets import PODS_API
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import Runtime, running_plugin
from nri_resmgr.testing.kubelet.pods import PodsService
from nri_resmgr.testing.kubelet.server import KubeletServer
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import parse_bytes, parse_cpus
from tests.app.node import SAFE, config

GIB = 1 << 30

FAST = Pauses(first=0.01, last=0.05, unserved=0.05)

_NAME = "90-resource-policy"


@attrs.define(eq=False)
class Node:
    """A node whose kubelet serves the Pods API.

    Attributes:
        capacity: Its memory in bytes.
    """

    runtime: Runtime
    plugin: ResourcePolicy
    service: PodsService
    server: KubeletServer
    pods: KubeletPods
    capacity: int

    async def sandbox(self, pod: core.Pod, annotations: Mapping[str, str] = {}) -> None:
        """Run the sandbox of a pod."""
        await self.runtime.run_pod(sandbox_of(pod, annotations))

    async def create(self, pod: core.Pod, *names: str) -> None:
        """Create and start containers of a pod; all without names."""
        for one in _containers(pod):
            if not names or one.name in names:
                made = container_of(pod, one, self.capacity)
                await self.runtime.create_container(pod.metadata.uid, made)
                await self.runtime.start_container(made.id)

    async def run(self, pod: core.Pod, annotations: Mapping[str, str] = {}) -> None:
        """Run a pod with all of its containers."""
        await self.sandbox(pod, annotations)
        await self.create(pod)

    async def resize(self, pod: core.Pod, name: str) -> None:
        """Have the runtime give a container what the pod says now."""
        (one,) = (each for each in _containers(pod) if each.name == name)
        made = container_of(pod, one, self.capacity)
        assert made.linux is not None
        assert made.linux.resources is not None
        await self.runtime.update_container(made.id, made.linux.resources)

    def spec(self, pod: core.Pod, name: str) -> ContainerSpec:
        """Return a container as the policy sees it."""
        return self.plugin.state.ledger.entries[_id(pod, name)].spec

    def has(self, pod: core.Pod, name: str, **fields: object) -> bool:
        """Return whether the policy sees a container with these fields."""
        spec = self.spec(pod, name)
        return all(getattr(spec, key) == value for key, value in fields.items())

    def pinned(self, pod: core.Pod, name: str) -> str:
        """Return the CPUs that the runtime has of a container."""
        cpu = self.runtime.container(_id(pod, name)).resources.cpu
        return cpu.cpus if cpu else ""

    async def known(self) -> None:
        """Wait until all pods are known."""
        async with asyncio.timeout(60):
            while self.pods.problem:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


@asynccontextmanager
async def running_node(
    folder: Path,
    machine: str = "1s2n8c1t",
    spec: str = "{}",
    *,
    serves: bool = True,
    observers: Sequence[DecisionObserver] = (),
) -> AsyncIterator[Node]:
    """Start a runtime, the plugin in this process, and the kubelet's socket."""
    plugin = ResourcePolicy(
        parse_spec(machine), parse_config(config(spec)), observers=observers
    )
    service = PodsService()
    server = KubeletServer(folder / PODS_API.socket, service)
    if serves:
        await server.start()
    connection = KubeletConnection(PODS_API, folder, FAST)
    pods = KubeletPods(plugin, connection, lambda: True)
    capacity = sum(one.memory for one in plugin.machine.nodes)
    task = asyncio.create_task(pods.run())
    try:
        async with (
            Runtime(folder, SAFE) as runtime,
            running_plugin(runtime, plugin, _NAME) as stub,
        ):
            plugin.use_update_sender(stub.updates)
            node = Node(runtime, plugin, service, server, pods, capacity)
            if serves:
                await node.known()
            yield node
            assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait({task})
        await server.stop()


def sandbox_of(pod: core.Pod, annotations: Mapping[str, str] = {}) -> Pod:
    """Return the sandbox that a kubelet makes of a pod."""
    meta = pod.metadata
    qos = _qos(pod)
    word = "" if qos == "guaranteed" else f"-{qos}"
    parents = "" if qos == "guaranteed" else f"/kubepods-{qos}.slice"
    name = f"kubepods{word}-pod{meta.uid.replace('-', '_')}.slice"
    own = pod.spec.resources if pod.spec.HasField("resources") else None
    return Pod(
        id=meta.uid,
        name=meta.name,
        uid=meta.uid,
        namespace=meta.namespace,
        annotations=annotations,
        linux=LinuxPod(
            cgroup_parent=f"/kubepods.slice{parents}/{name}",
            pod_resources=_resources(own, own) if own is not None else None,
        ),
    )


def container_of(pod: core.Pod, one: core.Container, capacity: int) -> Container:
    """Return a container as a kubelet creates it."""
    qos = _qos(pod)
    score = {"guaranteed": -997, "besteffort": 1000}.get(qos)
    if score is None:
        asked = one.resources.requests
        memory = parse_bytes(asked["memory"].string) if "memory" in asked else 0
        score = min(max(1000 - 1000 * memory // capacity, 3), 999)
    own = pod.spec.resources if pod.spec.HasField("resources") else None
    return Container(
        id=_id(pod, one.name),
        name=one.name,
        labels={"io.kubernetes.container.name": one.name},
        linux=LinuxContainer(
            resources=_resources(one.resources, own), oom_score_adj=score
        ),
    )


def _resources(
    of: core.ResourceRequirements, pod: core.ResourceRequirements | None
) -> LinuxResources:
    limits = {name: one.string for name, one in (pod.limits if pod else {}).items()}
    limits |= {name: one.string for name, one in of.limits.items()}
    cpu = of.requests["cpu"].string if "cpu" in of.requests else limits.get("cpu", "0")
    shares = max(parse_cpus(cpu) * 1024 // 1000, 2)
    limit = parse_cpus(limits["cpu"]) if "cpu" in limits else 0
    quota = max(limit * 100, 1000) if limit else 0
    memory = parse_bytes(limits["memory"]) if "memory" in limits else 0
    return LinuxResources(
        cpu=LinuxCpu(shares=shares, quota=quota, period=100_000),
        memory=LinuxMemory(limit=memory),
    )


def _qos(pod: core.Pod) -> str:
    spec = pod.spec
    found = [one.resources for one in _containers(pod)]
    if spec.HasField("resources"):
        found = [spec.resources]
    if not any(one.requests or one.limits for one in found):
        return "besteffort"
    guaranteed = all(
        {"cpu", "memory"} <= {*one.limits}
        and all(
            one.requests[key].string == one.limits[key].string
            for key in ("cpu", "memory")
        )
        for one in found
    )
    return "guaranteed" if guaranteed else "burstable"


def _containers(pod: core.Pod) -> list[core.Container]:
    return [*pod.spec.initContainers, *pod.spec.containers]


def _id(pod: core.Pod, name: str) -> str:
    return f"{pod.metadata.uid}.{name}"
