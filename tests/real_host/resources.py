"""What a kubelet writes into CRI messages for a container's requests and limits."""

from __future__ import annotations

import enum
from typing import Self

import attrs

from tests.real_host._gen import cri_pb2 as pb

MIB = 1 << 20
_PERIOD = 100_000  # microseconds; the kubelet's default CFS period
_MIN_SHARES = 2  # the kernel's least, and the kubelet's word for "no request"


class QosClass(enum.StrEnum):
    """A pod's class, spelled as Kubernetes does."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


@attrs.frozen
class Resources:
    """One container's share of the machine.

    Attributes:
        qos: The class of a pod whose containers all look like this one.
        shares: CPU weight, 1024 per CPU.
        quota: CPU time in microseconds per 100 ms; 0 is no limit.
        memory: Limit in bytes; 0 is no limit.
        oom_score_adj: As the kubelet would set it.

    Source:
        Kubernetes, pkg/kubelet/cm/helpers_linux.go (shares, quota) and
        pkg/kubelet/qos/policy.go (OOM scores).
    """

    qos: QosClass
    shares: int
    quota: int
    memory: int
    oom_score_adj: int

    @classmethod
    def guaranteed(cls, cpus: float, memory: int = 64 * MIB) -> Self:
        """Request and limit of *cpus* CPUs (1.5: 1500m) and *memory* bytes."""
        shares, quota = _shares(cpus), round(cpus * _PERIOD)
        return cls(QosClass.GUARANTEED, shares, quota, memory, -997)

    @classmethod
    def burstable(cls, cpus: float, limit: float = 0, memory: int = 0) -> Self:
        """A request of *cpus* CPUs, perhaps with limits of CPUs and memory."""
        quota = round(limit * _PERIOD)
        return cls(QosClass.BURSTABLE, _shares(cpus), quota, memory, 999)

    @classmethod
    def best_effort(cls) -> Self:
        """No request and no limit."""
        return cls(QosClass.BEST_EFFORT, _MIN_SHARES, 0, 0, 1000)

    def message(self) -> pb.LinuxContainerResources:
        """These values as CRI carries them."""
        return pb.LinuxContainerResources(
            cpu_period=_PERIOD,
            cpu_quota=self.quota,
            cpu_shares=self.shares,
            memory_limit_in_bytes=self.memory,
            oom_score_adj=self.oom_score_adj,
        )


def _shares(cpus: float) -> int:
    return max(_MIN_SHARES, round(cpus * 1000) * 1024 // 1000)
