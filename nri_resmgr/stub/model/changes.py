"""What plugins ask for: the plain values under adjustments, updates, evictions."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY
from nri_resmgr.stub.model.oci import Device, Namespace, NetDevice
from nri_resmgr.stub.model.resources import LinuxResources
from nri_resmgr.stub.model.scheduling import IoPriority, MemoryPolicy, Rdt, Scheduler
from nri_resmgr.stub.model.seccomp import Seccomp


class KeyValue(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An environment variable in an adjustment; a key "-NAME" is a removal mark."""

    key: str = ""
    value: str = ""


class LinuxContainerAdjustment(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of an adjustment; keys with "-" in front are removal marks."""

    devices: tuple[Device, ...] = ()
    resources: LinuxResources | None = None
    cgroups_path: str = ""
    oom_score_adj: int | None = None
    io_priority: IoPriority | None = None
    seccomp_policy: Seccomp | None = None
    namespaces: tuple[Namespace, ...] = ()
    sysctl: Mapping[str, str] = EMPTY
    net_devices: Mapping[str, NetDevice] = EMPTY
    scheduler: Scheduler | None = None
    rdt: Rdt | None = None
    memory_policy: MemoryPolicy | None = None


class LinuxContainerUpdate(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The only thing that an update can change."""

    resources: LinuxResources | None = None


class ContainerEviction(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A wish to evict a container; no runtime of today acts on it."""

    container_id: str = ""
    reason: str = ""
