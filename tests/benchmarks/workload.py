"""A mixed workload, with the values that the kubelet gives the runtime."""

from __future__ import annotations

from typing import Final

import attrs

from nri_proto import nri_pb2 as pb
from nri_resmgr.policy.requests import oom_score_adj_of, quota_of, shares_of
from nri_resmgr.topology import Machine
from nri_resmgr.values import Bytes, MilliCpus
from tests.benchmarks.node import make_container, make_pod

_MIB: Final = 1 << 20
_PERIOD: Final = 100_000

# Of twenty containers one is Guaranteed, seven are BestEffort, the others Burstable.
_TURN: Final = 20
_BEST_EFFORT: Final = frozenset({1, 4, 7, 10, 13, 16, 19})
_GUARANTEED: Final = 5

# In turn: CPU request, CPU limit, memory request, memory limit; 0 for none. A small
# service, one that may burst, one without a CPU limit, and one that only logs.
_BURSTABLE: Final = (
    (50, 200, 128, 256),
    (25, 1000, 256, 1024),
    (100, 0, 256, 512),
    (10, 0, 64, 0),
)


@attrs.frozen
class Amounts:
    """What a container asks for; 0 for no request, or no limit.

    Attributes:
        qos: The pod's folder below ``/kubepods``.
        cpu: Thousandths.
        cpu_limit: Thousandths.
        memory: MiB.
        memory_limit: MiB.
    """

    qos: str
    cpu: int = 0
    cpu_limit: int = 0
    memory: int = 0
    memory_limit: int = 0


def amounts_of(number: int) -> Amounts:
    """Say what the container of that number asks for."""
    turn, place = divmod(number, _TURN)
    if place == _GUARANTEED:
        return Amounts("", 2000, 2000, 1024, 1024)
    if place in _BEST_EFFORT:
        return Amounts("/besteffort")
    return Amounts("/burstable", *_BURSTABLE[(turn + place) % len(_BURSTABLE)])


def pod_of(number: int) -> pb.PodSandbox:
    """Make the pod of one container."""
    amounts, pod = amounts_of(number), make_pod(number)
    pod.linux.cgroup_parent = f"/kubepods{amounts.qos}/pod{pod.uid}"
    pod.linux.pod_resources.CopyFrom(_resources(amounts))
    return pod


def container_of(number: int, machine: Machine) -> pb.Container:
    """Make a container as the kubelet of *machine* would."""
    amounts, pod = amounts_of(number), pod_of(number)
    container = make_container(number, pod)
    container.linux.resources.CopyFrom(_resources(amounts))
    container.linux.oom_score_adj.value = _oom_score_adj(amounts, machine)
    return container


def _resources(amounts: Amounts) -> pb.LinuxResources:
    limit = MilliCpus(amounts.cpu_limit)
    quota = quota_of(limit, _PERIOD) if limit else 0
    return pb.LinuxResources(
        cpu=pb.LinuxCPU(
            shares=pb.OptionalUInt64(value=shares_of(MilliCpus(amounts.cpu))),
            quota=pb.OptionalInt64(value=quota),
            period=pb.OptionalUInt64(value=_PERIOD),
        ),
        memory=pb.LinuxMemory(
            limit=pb.OptionalInt64(value=amounts.memory_limit * _MIB)
        ),
        hugepage_limits=[
            pb.HugepageLimit(page_size=size, limit=0) for size in ("1GB", "2MB")
        ],
    )


def _oom_score_adj(amounts: Amounts, machine: Machine) -> int:
    match amounts.qos:
        case "":
            return -997
        case "/besteffort":
            return 1000
        case _:
            capacity = Bytes(sum(node.memory for node in machine.nodes))
            return oom_score_adj_of(Bytes(amounts.memory * _MIB), capacity)
