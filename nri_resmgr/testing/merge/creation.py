"""Merges the adjustments of several plugins for a new container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nri_proto import NriLevel, nri_pb2
from nri_proto.levels import NEWEST
from nri_resmgr.testing.merge.keyed import (
    merge_devices,
    merge_env,
    merge_mounts,
    merge_namespaces,
    merge_net_devices,
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

# Messages with one owner as a whole, and whether the next plugin sees them: a
# container has no field for the memory policy.
_WHOLE: Final = (
    ("oom_score_adj", nri_pb2.OomScoreAdj, True),
    ("io_priority", nri_pb2.IoPriority, True),
    ("seccomp_policy", nri_pb2.SeccompPolicy, True),
    ("scheduler", nri_pb2.LinuxSched, True),
    ("memory_policy", nri_pb2.MemoryPolicy, False),
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
        self.owners = Owners(level)
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
        changes = as_read(reply.adjust, self._level)
        container, merged = self.container, self.adjustment
        annotations = (container.annotations, merged.annotations)
        merge_strings(claimant, nri_pb2.Annotations, changes.annotations, *annotations)
        merge_mounts(claimant, changes.mounts, container, merged)
        merge_env(claimant, changes.env, container, merged)
        self._merge_hooks(claimant, changes.hooks)
        self._merge_linux(claimant, changes.linux)
        self._merge_additions(claimant, changes)
        if changes.args:
            self._merge_args(claimant, changes.args)
        as_merged(merged, self._level)
        self._updates.apply(plugin, reply.update)

    def _merge_hooks(self, claimant: Claimant, hooks: nri_pb2.Hooks) -> None:
        if not any(getattr(hooks, kind) for kind in _HOOKS):
            return
        for seen in (self.container.hooks, self.adjustment.hooks):
            for kind in _HOOKS:
                getattr(seen, kind).extend(getattr(hooks, kind))
        self.owners.share(self.container.id, nri_pb2.OciHooks, claimant.plugin)

    def _merge_linux(
        self, claimant: Claimant, linux: nri_pb2.LinuxContainerAdjustment
    ) -> None:
        container, merged = self.container.linux, self.adjustment.linux
        if linux.devices:  # clearing a list would make an absent part present
            merge_devices(claimant, linux.devices, container, merged)
        merge_namespaces(claimant, linux.namespaces, container, merged)
        sysctl = (container.sysctl, merged.sysctl)
        merge_strings(claimant, nri_pb2.Sysctl, linux.sysctl, *sysctl)
        if linux.HasField("resources"):
            targets = (container.resources, merged.resources)
            merge_resources(claimant, linux.resources, *targets)
        if linux.cgroups_path:
            claimant.claim(nri_pb2.CgroupsPath)
            container.cgroups_path = linux.cgroups_path
            merged.cgroups_path = linux.cgroups_path
        for name, field, is_seen in _WHOLE:
            if linux.HasField(name):
                claimant.claim(field)
                put(getattr(merged, name), getattr(linux, name))
                if is_seen:
                    put(getattr(container, name), getattr(linux, name))
        merge_net_devices(claimant, linux.net_devices, container, merged)
        if linux.HasField("rdt"):
            _merge_rdt(claimant, linux.rdt, merged)

    def _merge_additions(
        self, claimant: Claimant, changes: nri_pb2.ContainerAdjustment
    ) -> None:
        for rlimit in changes.rlimits:
            claimant.claim(nri_pb2.Rlimits, rlimit.type)
            self.container.rlimits.append(rlimit)
            self.adjustment.rlimits.append(rlimit)
        for device in changes.CDI_devices:
            claimant.claim(nri_pb2.CdiDevices, device.name)
            self.adjustment.CDI_devices.append(device)

    def _merge_args(self, claimant: Claimant, args: Sequence[str]) -> None:
        if args[0] == "":  # replace them even if they have an owner
            claimant.clear(nri_pb2.Args)
            args = args[1:]
        claimant.claim(nri_pb2.Args)
        self.container.args[:] = args
        self.adjustment.args[:] = args


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
