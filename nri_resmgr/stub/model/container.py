"""A container as the runtime describes it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY
from nri_resmgr.stub.model.enums import ContainerState
from nri_resmgr.stub.model.oci import (
    CdiDevice,
    Device,
    Hooks,
    Mount,
    Namespace,
    NetDevice,
    Rlimit,
)
from nri_resmgr.stub.model.resources import LinuxCpu, LinuxMemory, LinuxResources
from nri_resmgr.stub.model.scheduling import IoPriority, Rdt, Scheduler
from nri_resmgr.stub.model.seccomp import Seccomp, SecurityProfile


class Image(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The image a container runs; runtimes tell it from NRI 0.12.2 on."""

    name: str = ""
    digest: str = ""
    config_digest: str = ""


class User(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Who the first process runs as."""

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
    """A container; times are UNIX nanoseconds, `env` entries read "NAME=value".

    Do not count on `state` (UNKNOWN in several events), `pid` (0 before the start)
    or `name` (empty for some clients); which runtime fills what is in the field
    tables of the documentation.

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
        """The environment by name; of a name that comes twice the last one counts."""
        return {
            name: value
            for name, _, value in (entry.partition("=") for entry in self.env)
        }

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources, all absent where the runtime reported none."""
        return (self.linux and self.linux.resources) or LinuxResources()

    @property
    def cpu(self) -> LinuxCpu:
        """CPU controls, so that ``container.cpu.shares`` needs no None checks."""
        return self.resources.cpu or LinuxCpu()

    @property
    def memory(self) -> LinuxMemory:
        """Memory controls, all absent where the runtime reported none."""
        return self.resources.memory or LinuxMemory()
