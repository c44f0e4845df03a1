"""The kubelet of a node under faults: it describes each pod before it runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.cli.workload import Workload
from nri_resmgr.kubelet.sockets import POD_RESOURCES, PODS_API
from nri_resmgr.stub import Pod
from nri_resmgr.testing.kubelet.pod_resources import (
    FakeDevice,
    FakePod,
    FakePodResources,
)
from nri_resmgr.testing.kubelet.pods import PodsService, container, pod
from nri_resmgr.testing.kubelet.server import KubeletServer
from nri_resmgr.values import QosClass

# Close to no node, so that pins do not depend on when it is known.
_RESOURCE: Final = "vendor.com/nic"


@attrs.frozen(eq=False)
class NodeKubelet:
    """Both services of a kubelet that the daemon uses.

    Attributes:
        folder: The kubelet's root directory.
    """

    folder: Path
    _pods: PodsService = attrs.field(factory=PodsService)
    _devices: FakePodResources = attrs.field(factory=FakePodResources)
    _admitted: dict[str, Pod] = attrs.field(factory=dict)

    def admit(self, workload: Workload) -> None:
        """Know a pod, whose container has one device."""
        made, name = workload.pod, workload.name
        amounts = {"cpu": f"{workload.milli_cpus}m"} if workload.milli_cpus else {}
        limits = {}
        if workload.qos is QosClass.GUARANTEED:
            limits = amounts = amounts | {"memory": "1Gi"}
        one = container(name, amounts, limits)
        self._pods.put(pod(made.uid, one, name=made.name, namespace=made.namespace))
        devices = {name: (FakeDevice(_RESOURCE, (f"nic-{name}",)),)}
        self._devices.put(FakePod(made.namespace, made.name, devices=devices))
        self._admitted[name] = made

    def forget(self, name: str) -> None:
        """Know a pod no more."""
        if (made := self._admitted.pop(name, None)) is not None:
            self._pods.delete(made.uid)
            self._devices.drop(made.namespace, made.name)

    @property
    def servers(self) -> tuple[KubeletServer, KubeletServer]:
        """Make the servers of both sockets."""
        return (
            KubeletServer(self.folder / PODS_API.socket, self._pods),
            KubeletServer(self.folder / POD_RESOURCES.socket, self._devices),
        )


@asynccontextmanager
async def kubelet_on(folder: Path) -> AsyncIterator[NodeKubelet]:
    """Serve both sockets below *folder*, which is the kubelet's root directory."""
    kubelet = NodeKubelet(folder)
    pods_api, pod_resources = kubelet.servers
    async with pods_api, pod_resources:
        yield kubelet
