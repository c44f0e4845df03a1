"""Merges the adjustments of several plugins for a new container."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from google.protobuf.message import Message

from nri_proto import NriLevel, nri_pb2
from nri_proto.levels import NEWEST
from nri_resmgr.testing.merge.keyed import (
    REMOVAL,
    merge_devices,
    merge_env,
    merge_mounts,
    merge_namespaces,
    merge_strings,
)
from nri_resmgr.testing.merge.owners import Owners
from nri_resmgr.testing.merge.releases import as_merged, as_read
from nri_resmgr.testing.merge.resources import Claimant, merge_resources, put
from nri_resmgr.testing.merge.updates import UpdateMerge

_HOOKS: Final = (
    "prestart",
    "create_runtime",
    "create_container",
    "start_container",
    "poststart",
    "poststop",
)

# Messages with one owner as a whole: field of the adjustment, and the container's field
# in which the next plugin sees it; the memory policy has none.
_WHOLE: Final = (
    ("oom_score_adj", nri_pb2.OomScoreAdj, "oom_score_adj"),
    ("io_priority", nri_pb2.IoPriority, "io_priority"),
    ("seccomp_policy", nri_pb2.SeccompPolicy, "seccomp_policy"),
    ("scheduler", nri_pb2.LinuxSched, "scheduler"),
    ("memory_policy", nri_pb2.MemoryPolicy, None),
)
_RDT: Final = (
    ("clos_id", nri_pb2.RdtClosID),
    ("schemata", nri_pb2.RdtSchemata),
    ("enable_monitoring", nri_pb2.RdtEnableMonitoring),
)


class CreationMerge:
    """Merges the replies to one CreateContainer.

    Attributes:
        container: The container as the next plugin sees it.
        adjustment: The merged adjustment.
        owners: Owners of the fields of this and of other containers.
    """

    def __init__(self, container: nri_pb2.Container, level: NriLevel = NEWEST) -> None:
        self.container = nri_pb2.Container()
        self.container.CopyFrom(container)
        self.adjustment = nri_pb2.ContainerAdjustment()
        self.owners = Owners()
        self._level = level
        self._updates = UpdateMerge(self.owners, creating=container.id)

    @property
    def updates(self) -> Sequence[nri_pb2.ContainerUpdate]:
        """Updates of other containers."""
        return self._updates.updates

    def apply(self, plugin: str, reply: nri_pb2.CreateContainerResponse) -> None:
        """Merge one plugin's reply.

        Raises:
            FieldConflict: It sets a field that has an owner.
            UpdateDuringCreation: It has an update of this container.
        """
        claimant = Claimant(self.owners, self.container.id, plugin)
        adjust = as_read(reply.adjust, self._level)
        for merge in _MERGES:
            merge(claimant, adjust, self.container, self.adjustment)
        as_merged(self.adjustment, self._level)
        self._updates.apply(plugin, reply.update)


def _merge_annotations(
    claimant: Claimant,
    changes: nri_pb2.ContainerAdjustment,
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    merge_strings(
        (claimant, nri_pb2.Annotations),
        changes.annotations,
        container.annotations,
        merged.annotations,
    )


def _merge_lists(
    claimant: Claimant,
    changes: nri_pb2.ContainerAdjustment,
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    merge_mounts(claimant, changes.mounts, container, merged)
    merge_env(claimant, changes.env, container, merged)


def _merge_hooks(
    claimant: Claimant,
    changes: nri_pb2.ContainerAdjustment,
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    if not any(getattr(changes.hooks, kind) for kind in _HOOKS):
        return
    for kind in _HOOKS:
        hooks = getattr(changes.hooks, kind)
        getattr(container.hooks, kind).extend(hooks)
        getattr(merged.hooks, kind).extend(hooks)
    claimant.owners.share(claimant.container_id, nri_pb2.OciHooks, claimant.plugin)


def _merge_linux(
    claimant: Claimant,
    changes: nri_pb2.ContainerAdjustment,
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    linux = changes.linux
    merge_devices(claimant, linux.devices, container, merged)
    merge_namespaces(claimant, linux.namespaces, container, merged)
    merge_strings(
        (claimant, nri_pb2.Sysctl),
        linux.sysctl,
        container.linux.sysctl,
        merged.linux.sysctl,
    )
    if linux.HasField("resources"):
        merge_resources(
            claimant,
            linux.resources,
            container.linux.resources,
            merged.linux.resources,
        )
    if linux.cgroups_path:
        claimant.claim(nri_pb2.CgroupsPath)
        container.linux.cgroups_path = linux.cgroups_path
        merged.linux.cgroups_path = linux.cgroups_path
    _merge_whole(claimant, linux, container.linux, merged.linux)
    _merge_net_devices(claimant, linux, container.linux, merged.linux)
    if linux.HasField("rdt"):
        _merge_rdt(claimant, linux.rdt, merged.linux)


def _merge_whole(
    claimant: Claimant,
    changes: nri_pb2.LinuxContainerAdjustment,
    container: nri_pb2.LinuxContainer,
    merged: nri_pb2.LinuxContainerAdjustment,
) -> None:
    for name, field, seen_as in _WHOLE:
        if not changes.HasField(name):
            continue
        claimant.claim(field)
        value: Message = getattr(changes, name)
        put(getattr(merged, name), value)
        if seen_as is not None:
            put(getattr(container, seen_as), value)


def _merge_net_devices(
    claimant: Claimant,
    changes: nri_pb2.LinuxContainerAdjustment,
    container: nri_pb2.LinuxContainer,
    merged: nri_pb2.LinuxContainerAdjustment,
) -> None:
    removed = {
        key.removeprefix(REMOVAL)
        for key in changes.net_devices
        if key.startswith(REMOVAL)
    }
    for key in removed:
        merged.net_devices[REMOVAL + key].SetInParent()
    for key, device in changes.net_devices.items():
        if key.startswith(REMOVAL):
            continue
        if key in removed:
            claimant.clear(nri_pb2.LinuxNetDevices, key)
        claimant.claim(nri_pb2.LinuxNetDevices, key)
        container.net_devices[key].CopyFrom(device)
        merged.net_devices[key].CopyFrom(device)


def _merge_rdt(
    claimant: Claimant,
    changes: nri_pb2.LinuxRdt,
    merged: nri_pb2.LinuxContainerAdjustment,
) -> None:
    if changes.remove:
        for _name, field in _RDT:
            claimant.clear(field)
        merged.rdt.CopyFrom(nri_pb2.LinuxRdt(remove=True))
    for name, field in _RDT:
        if changes.HasField(name):
            claimant.claim(field)
            put(getattr(merged.rdt, name), getattr(changes, name))


def _merge_additions(
    claimant: Claimant,
    changes: nri_pb2.ContainerAdjustment,
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    for rlimit in changes.rlimits:
        claimant.claim(nri_pb2.Rlimits, rlimit.type)
        container.rlimits.append(rlimit)
        merged.rlimits.append(rlimit)
    for device in changes.CDI_devices:
        claimant.claim(nri_pb2.CdiDevices, device.name)
        merged.CDI_devices.append(device)


def _merge_args(
    claimant: Claimant,
    changes: nri_pb2.ContainerAdjustment,
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    args: Iterable[str] = changes.args
    if not changes.args:
        return
    if changes.args[0] == "":  # replace them even if they have an owner
        claimant.clear(nri_pb2.Args)
        args = changes.args[1:]
    claimant.claim(nri_pb2.Args)
    container.args[:] = args
    merged.args[:] = args


_MERGES: Final = (
    _merge_annotations,
    _merge_lists,
    _merge_hooks,
    _merge_linux,
    _merge_additions,
    _merge_args,
)
