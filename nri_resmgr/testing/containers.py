"""Containers with the cgroup values that the kubelet makes of requests and limits.

A test says what the pod's author would; a plugin that reads requests (`sdk.requests`)
gets the same amounts, memory requests of burstable containers to a thousandth of this
machine's memory.
"""

from __future__ import annotations

from typing import Final

from nri_resmgr.host.fields import memory_total
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.requests import (
    DEFAULT_PERIOD,
    oom_score_adj_of,
    quota_of,
    shares_of,
)
from nri_resmgr.stub.model import (
    Container,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
)
from nri_resmgr.values.quantities import Bytes, MilliCpus, parse_bytes, parse_cpus

# Kubernetes, pkg/kubelet/qos.
_GUARANTEED_OOM: Final = -997
_BEST_EFFORT_OOM: Final = 1000


def guaranteed(name: str = "app", *, cpu: str | int, memory: str) -> Container:
    """Return a container whose limits are its requests.

    Args:
        name: Its name in the pod.
        cpu: A quantity of Kubernetes, such as 2 or ``"500m"``.
        memory: Likewise, such as ``"1Gi"``.
    """
    request = parse_cpus(str(cpu))
    return _container(name, request, request, parse_bytes(memory), _GUARANTEED_OOM)


def burstable(
    name: str = "app",
    *,
    cpu: str | int = 0,
    memory: str = "0",
    cpu_limit: str | int | None = None,
    memory_limit: str | None = None,
) -> Container:
    """Return a container with requests, limits or both; None is no limit.

    Args:
        name: Its name in the pod.
        cpu: The request.
        memory: The request, which its OOM score stands for.
        cpu_limit: The limit.
        memory_limit: The limit.
    """
    return _container(
        name,
        parse_cpus(str(cpu)),
        None if cpu_limit is None else parse_cpus(str(cpu_limit)),
        None if memory_limit is None else parse_bytes(memory_limit),
        oom_score_adj_of(
            parse_bytes(memory), memory_total(HostTree(), "/proc/meminfo")
        ),
    )


def best_effort(name: str = "app") -> Container:
    """Return a container without requests and limits."""
    return _container(name, MilliCpus(0), None, None, _BEST_EFFORT_OOM)


def _container(
    name: str,
    request: MilliCpus,
    limit: MilliCpus | None,
    memory_limit: Bytes | None,
    oom_score_adj: int,
) -> Container:
    cpu = LinuxCpu(
        shares=shares_of(request),
        quota=None if limit is None else quota_of(limit),
        period=None if limit is None else DEFAULT_PERIOD,
    )
    resources = LinuxResources(cpu=cpu, memory=LinuxMemory(limit=memory_limit))
    linux = LinuxContainer(resources=resources, oom_score_adj=oom_score_adj)
    return Container(name=name, linux=linux)
