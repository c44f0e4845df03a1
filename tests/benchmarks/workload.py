"""A mixed workload, with the values that the kubelet gives the runtime."""

from __future__ import annotations

from typing import Final

import attrs

from nri_proto import nri_pb2 as pb
from nri_resmgr.policy.requests import oom_score_adj_of, quota_of, shares_of
from nri_resmgr.topology import Machine
from nri_resmgr.values import Bytes, MilliCpus
from tests.benchmarks.node import SYSTEM_MOUNTS, make_container, make_pod

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

# One container in so many has a volume that it writes to.
_WRITERS: Final = 4


@attrs.frozen
class Amounts:
    """Requests and limits of a container; 0 for none.

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
    """Return the requests of the container with that number."""
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
    del container.mounts[len(SYSTEM_MOUNTS) :]
    container.mounts.extend(_volumes(number, pod))
    return container


def mount_table(pods: int) -> str:
    """Write ``/proc/1/mountinfo`` of a node with so many pods."""
    rows = ["1 0 259:2 / / rw - ext4 /dev/nvme0n1p2 rw"]
    rows += [f"{n} 1 0:{n} / /sys/{n} rw - sysfs sysfs rw" for n in range(2, 30)]
    for number in range(pods):
        folder = f"/var/lib/kubelet/pods/{pod_of(number).uid}/volumes"
        sandbox = f"/run/containerd/io.containerd.runtime.v2.task/k8s.io/{number:064x}"
        what = "rw,relatime shared:99 - tmpfs tmpfs rw,size=1048576k,inode64"
        rows.append(f"30 1 0:30 / {folder}/kubernetes.io~projected/token {what}")
        rows.append(f"31 1 0:31 / {sandbox}/shm {what}")
        rows.append(f"32 1 0:32 / {sandbox}/rootfs {what}")
    return "\n".join(rows)


def _volumes(number: int, pod: pb.PodSandbox) -> list[pb.Mount]:
    folder = f"/var/lib/kubelet/pods/{pod.uid}"
    volumes = f"{folder}/volumes/kubernetes.io~"
    secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
    found = {
        f"{folder}/containers/container-{number}/0f6bd3a1": "/dev/termination-log",
        f"{volumes}projected/kube-api-access-x7r2k": secrets,
        f"{volumes}configmap/settings": "/etc/service",
        f"{volumes}secret/certificates": "/var/lib/certificates",
    }
    if number % _WRITERS == 0:
        found[f"{volumes}empty-dir/data"] = "/var/lib/data"
    return [_mount(source, where) for source, where in found.items()]


def _mount(source: str, where: str) -> pb.Mount:
    may_write = "termination" in where or where.endswith("data")
    options = ["rbind", "rprivate", "rw" if may_write else "ro"]
    return pb.Mount(destination=where, type="bind", source=source, options=options)


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
