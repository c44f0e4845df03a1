"""Pods of a synthetic workload, as a kubelet would request them."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.scenario.kubelet import container_of, pod_of
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.stub import Container, Pod
from nri_resmgr.values import Bytes, MilliCpus, QosClass
from nri_resmgr.values.counts import count_text

_GIB: Final = Bytes(1 << 30)
_CAPACITY: Final = Bytes(64 << 30)  # of the node; no pod here requests a share of it


class Workload(msgspec.Struct, frozen=True):
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
        if not self.milli_cpus:
            return "nothing"
        if self.milli_cpus % 1000:
            return f"{self.milli_cpus}m"
        return count_text(self.milli_cpus // 1000, "CPU")

    @property
    def pod(self) -> Pod:
        """The sandbox, in the cgroup of its QoS class."""
        return msgspec.structs.replace(
            pod_of(self.name, self._row), id=f"pod-{self.name}"
        )

    @property
    def container(self) -> Container:
        """The container, with the cgroup values of its request."""
        made = container_of(f"ctr-{self.name}", self._row, _CAPACITY)
        return msgspec.structs.replace(made, name=self.name)

    @property
    def _row(self) -> ContainerRow:
        memory = _GIB if self.qos is QosClass.GUARANTEED else None
        request = MilliCpus(self.milli_cpus)
        return ContainerRow(qos=self.qos, request=request, memory=memory)
