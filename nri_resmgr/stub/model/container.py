"""Pods and containers as the runtime describes them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY
from nri_resmgr.stub.model.enums import ContainerState
from nri_resmgr.stub.model.oci import (
    CdiDevice,
    Device,
    Hooks,
    IoPriority,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Mount,
    Namespace,
    NetDevice,
    Rdt,
    Rlimit,
    Scheduler,
    Seccomp,
    SecurityProfile,
)


class LinuxPod(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of a pod.

    `pod_overhead` and `pod_resources` are what the kubelet reported at creation: sums
    over all containers as cgroup values. Runtimes do not update them later.
    """

    pod_overhead: LinuxResources | None = None
    pod_resources: LinuxResources | None = None
    cgroup_parent: str = ""
    cgroups_path: str = ""
    namespaces: tuple[Namespace, ...] = ()
    resources: LinuxResources | None = None


class Pod(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A pod sandbox; in stop and remove events it may have only its id."""

    id: str = ""
    name: str = ""
    uid: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    runtime_handler: str = ""
    linux: LinuxPod | None = None
    pid: int = 0
    ips: tuple[str, ...] = ()


class Image(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The image of a container; runtimes send it from NRI 0.12.2 on."""

    name: str = ""
    digest: str = ""
    config_digest: str = ""


class User(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """User and groups of the container's first process."""

    uid: int = 0
    gid: int = 0
    additional_gids: tuple[int, ...] = ()


class LinuxContainer(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of a container."""

    namespaces: tuple[Namespace, ...] = ()
    devices: tuple[Device, ...] = ()
    resources: LinuxResources | None = None
    oom_score_adj: int | None = None
    cgroups_path: str = ""
    io_priority: IoPriority | None = None
    seccomp_profile: SecurityProfile | None = None
    seccomp_policy: Seccomp | None = None
    sysctl: Mapping[str, str] = EMPTY
    net_devices: Mapping[str, NetDevice] = EMPTY
    scheduler: Scheduler | None = None
    rdt: Rdt | None = None


class Container(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A container; times are UNIX nanoseconds, `env` entries are "NAME=value".

    Do not rely on `state` (UNKNOWN in several events), `pid` (0 before the start) or
    `name` (empty for some clients): which fields are set depends on the runtime.

    >>> Container(name="web", env=("A=1", "B=x=y")).environment["B"]
    'x=y'
    """

    id: str = ""
    pod_sandbox_id: str = ""
    name: str = ""
    state: ContainerState | int = ContainerState.UNKNOWN
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: Hooks | None = None
    linux: LinuxContainer | None = None
    pid: int = 0
    rlimits: tuple[Rlimit, ...] = ()
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    status_reason: str = ""
    status_message: str = ""
    cdi_devices: tuple[CdiDevice, ...] = ()
    user: User | None = None
    image: Image | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment by name; the last entry of a name wins."""
        return {
            name: value
            for name, _, value in (entry.partition("=") for entry in self.env)
        }

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources; all absent if the runtime reported none."""
        return (self.linux and self.linux.resources) or LinuxResources()

    @property
    def cpu(self) -> LinuxCpu:
        """CPU controls; all absent if the runtime reported none."""
        return self.resources.cpu or LinuxCpu()

    @property
    def memory(self) -> LinuxMemory:
        """Memory controls; all absent if the runtime reported none."""
        return self.resources.memory or LinuxMemory()
