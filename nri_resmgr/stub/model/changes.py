"""What plugins ask for: the plain values under adjustments, updates, evictions."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nri_resmgr.stub.model.frozen import EMPTY, Value, as_mapping, as_text_map, as_tuple
from nri_resmgr.stub.model.oci import Device, Namespace, NetDevice
from nri_resmgr.stub.model.resources import LinuxResources
from nri_resmgr.stub.model.scheduling import IoPriority, MemoryPolicy, Rdt, Scheduler
from nri_resmgr.stub.model.seccomp import Seccomp
from nri_resmgr.values.declared import frozen


@frozen
class KeyValue(Value):
    """An environment variable in an adjustment; a key "-NAME" is a removal mark."""

    key: str = ""
    value: str = ""


@frozen
class LinuxContainerAdjustment(Value):
    """The Linux part of an adjustment; keys with "-" in front are removal marks."""

    devices: tuple[Device, ...] = attrs.field(default=(), converter=as_tuple)
    resources: LinuxResources | None = None
    cgroups_path: str = ""
    oom_score_adj: int | None = None
    io_priority: IoPriority | None = None
    seccomp_policy: Seccomp | None = None
    namespaces: tuple[Namespace, ...] = attrs.field(default=(), converter=as_tuple)
    sysctl: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)
    net_devices: Mapping[str, NetDevice] = attrs.field(
        default=EMPTY, converter=as_mapping
    )
    scheduler: Scheduler | None = None
    rdt: Rdt | None = None
    memory_policy: MemoryPolicy | None = None


@frozen
class LinuxContainerUpdate(Value):
    """The only thing that an update can change."""

    resources: LinuxResources | None = None


@frozen
class ContainerEviction(Value):
    """A wish to evict a container; no runtime of today acts on it."""

    container_id: str = ""
    reason: str = ""
