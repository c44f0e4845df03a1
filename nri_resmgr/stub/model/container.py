"""A container as the runtime describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from nri_resmgr.stub.model.enums import ContainerState
from nri_resmgr.stub.model.frozen import (
    EMPTY,
    Value,
    as_mapping,
    as_text_map,
    as_texts,
    as_tuple,
    unread,
    unread_entries,
)
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
from nri_resmgr.values.declared import frozen


@frozen
class Image(Value):
    """The image a container runs; runtimes tell it from NRI 0.12.2 on."""

    name: str = ""
    digest: str = ""
    config_digest: str = ""


@frozen
class User(Value):
    """Who the first process runs as."""

    uid: int = 0
    gid: int = 0
    additional_gids: tuple[int, ...] = attrs.field(default=(), converter=as_tuple)


@frozen
class LinuxContainer(Value):
    """The Linux part of a container."""

    namespaces: tuple[Namespace, ...] = attrs.field(default=(), converter=as_tuple)
    devices: tuple[Device, ...] = attrs.field(default=(), converter=as_tuple)
    resources: LinuxResources | None = None
    oom_score_adj: int | None = None
    cgroups_path: str = ""
    io_priority: IoPriority | None = None
    seccomp_profile: SecurityProfile | None = None
    seccomp_policy: Seccomp | None = None
    sysctl: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)
    net_devices: Mapping[str, NetDevice] = attrs.field(
        default=EMPTY, converter=as_mapping
    )
    scheduler: Scheduler | None = None
    rdt: Rdt | None = None


class RawMount(Protocol):
    """What can be read off a mount of which no value was made."""

    @property
    def destination(self) -> str:
        """Where it is in the container."""

    @property
    def source(self) -> str:
        """What is mounted; the path on the host if it begins with a slash."""

    @property
    def options(self) -> Sequence[str]:
        """As in fstab(5)."""


@frozen
class Container(Value):
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
    labels: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)
    annotations: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)
    args: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    env: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    mounts: tuple[Mount, ...] = attrs.field(default=(), converter=as_tuple)
    hooks: Hooks | None = None
    linux: LinuxContainer | None = None
    pid: int = 0
    rlimits: tuple[Rlimit, ...] = attrs.field(default=(), converter=as_tuple)
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    status_reason: str = ""
    status_message: str = ""
    cdi_devices: tuple[CdiDevice, ...] = attrs.field(default=(), converter=as_tuple)
    user: User | None = None
    image: Image | None = None

    @property
    def raw_mounts(self) -> Sequence[RawMount]:
        """`mounts` for a glance: a dozen values take as long as a decision."""
        mounts: Sequence[RawMount] = unread(self, "mounts")
        return mounts

    @property
    def raw_labels(self) -> Mapping[str, str]:
        """`labels` for a look-up or two, which all of them need not be read for."""
        labels: Mapping[str, str] = unread_entries(self, "labels")
        return labels

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment by name; of a name that comes twice the last one counts."""
        return as_mapping(
            {
                name: value
                for name, _, value in (entry.partition("=") for entry in self.env)
            }
        )

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources, all absent where the runtime told none."""
        return (self.linux and self.linux.resources) or LinuxResources()

    @property
    def cpu(self) -> LinuxCpu:
        """CPU controls, so that ``container.cpu.shares`` needs no None checks."""
        return self.resources.cpu or LinuxCpu()

    @property
    def memory(self) -> LinuxMemory:
        """Memory controls, all absent where the runtime told none."""
        return self.resources.memory or LinuxMemory()
