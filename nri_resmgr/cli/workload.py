"""Pods of a made-up workload, as a kubelet would ask for them."""

from __future__ import annotations

from typing import Final

from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.values import QosClass
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen

_PERIOD: Final = 100_000  # microseconds, the kubelet's default CFS period
_SHARES: Final = 1024  # of one CPU
_MIN_SHARES: Final = 2  # what the kubelet writes for no request at all
_CGROUPS: Final = {
    QosClass.GUARANTEED: "/kubepods",
    QosClass.BURSTABLE: "/kubepods/burstable",
    QosClass.BEST_EFFORT: "/kubepods/besteffort",
}


@frozen
class Workload(ByContent):
    """A pod with one container of the same name.

    Attributes:
        milli_cpus: The CPU request; a Guaranteed pod's limit, too.
    """

    name: str
    qos: QosClass
    milli_cpus: int = 0

    @property
    def asks(self) -> str:
        """The CPU request in words."""
        whole, rest = divmod(self.milli_cpus, 1000)
        if rest or not whole:
            return f"{rest}m" if rest else "nothing"
        return "1 CPU" if whole == 1 else f"{whole} CPUs"

    @property
    def pod(self) -> Pod:
        """The sandbox, in the cgroup that tells its QoS class."""
        parent = f"{_CGROUPS[self.qos]}/pod-{self.name}"
        return Pod(
            id=f"pod-{self.name}", name=self.name, linux=LinuxPod(cgroup_parent=parent)
        )

    @property
    def container(self) -> Container:
        """The container, with the cgroup values of its request."""
        shares = max(_MIN_SHARES, self.milli_cpus * _SHARES // 1000)
        cpu, memory = LinuxCpu(shares=shares), None
        if self.qos is QosClass.GUARANTEED:
            quota = self.milli_cpus * _PERIOD // 1000
            cpu = LinuxCpu(shares=shares, quota=quota, period=_PERIOD)
            memory = LinuxMemory(limit=1 << 30)
        resources = LinuxResources(cpu=cpu, memory=memory)
        linux = LinuxContainer(resources=resources)
        return Container(id=f"ctr-{self.name}", name=self.name, linux=linux)
