"""Parts of adjustments, updates and evictions, and the owners of adjusted fields."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY
from nri_resmgr.stub.model.oci import (
    Device,
    IoPriority,
    LinuxResources,
    MemoryPolicy,
    Namespace,
    NetDevice,
    Rdt,
    Scheduler,
    Seccomp,
)


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
    """The Linux part of an update, which has no other part."""

    resources: LinuxResources | None = None


class ContainerEviction(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A request to evict a container; present runtimes ignore it."""

    container_id: str = ""
    reason: str = ""


class PluginInstance(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A plugin that was called for the request; `index` is two digits."""

    name: str = ""
    index: str = ""


class CompoundFieldOwners(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Each key of a compound field with the plugin that set it."""

    owners: Mapping[str, str] = EMPTY


class FieldOwners(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The owners of one container's fields, by the numbers of `AdjustedField`."""

    simple: Mapping[int, str] = EMPTY
    compound: Mapping[int, CompoundFieldOwners] = EMPTY


class OwningPlugins(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Field owners by container id; a plugin with "-" in front cleared the field."""

    owners: Mapping[str, FieldOwners] = EMPTY
