"""Applies merged adjustments and updates to a container, as runtimes do."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Final

from nri_proto import nri_pb2
from nri_resmgr.testing.merge.keyed import REMOVAL
from nri_resmgr.testing.merge.owners import Owners
from nri_resmgr.testing.merge.resources import Claimant, merge_resources, put

_CPU: Final = ("shares", "quota", "period", "realtime_runtime", "realtime_period")

# Fields that CRI has.
_UPDATED_CPU: Final = ("shares", "quota", "period")


def apply_adjustment(
    adjustment: nri_pb2.ContainerAdjustment, container: nri_pb2.Container
) -> None:
    """Change a container as the runtimes' OCI generator changes its spec.

    The memory policy has no field in a container message.

    Source:
        nri, pkg/runtime-tools/generate/generate.go.
    """
    _apply_strings(adjustment.annotations, container.annotations)
    _apply_env(adjustment.env, container)
    if adjustment.args:
        container.args[:] = adjustment.args
    if adjustment.HasField("hooks"):
        container.hooks.MergeFrom(adjustment.hooks)
    container.CDI_devices.extend(adjustment.CDI_devices)
    if adjustment.HasField("linux"):
        _apply_linux(adjustment.linux, container.linux)
    _apply_mounts(adjustment.mounts, container)
    container.rlimits.extend(adjustment.rlimits)


def overlay_resources(
    changes: nri_pb2.LinuxResources, resources: nri_pb2.LinuxResources
) -> None:
    """Update resources with all fields that are set, as CRI-O does for plugins.

    Only updates of a kubelet are limited to the fields of CRI there.
    """
    limits = list(changes.hugepage_limits)
    rest = nri_pb2.LinuxResources()
    rest.CopyFrom(changes)
    rest.ClearField("hugepage_limits")
    # The replies are merged already, so there are no conflicts.
    merge_resources(Claimant(Owners(), "", ""), rest, resources)
    _apply_hugepages(limits, resources)


def apply_resources(
    changes: nri_pb2.LinuxResources, resources: nri_pb2.LinuxResources
) -> None:
    """Update resources as CRI does: 0 and empty mean unchanged.

    Memory limit, CPU shares, quota and period, the CPU and node lists, hugepages and
    unified keys are applied, and swap is set to the memory limit. Everything else is
    lost.

    Source:
        containerd, internal/cri/nri/nri_api_linux.go.
    """
    for name in _UPDATED_CPU:
        if getattr(changes.cpu, name).value:
            put(getattr(resources.cpu, name), getattr(changes.cpu, name))
    _apply_common(changes, resources)


def _apply_env(
    variables: Iterable[nri_pb2.KeyValue], container: nri_pb2.Container
) -> None:
    places = {text.partition("=")[0]: at for at, text in enumerate(container.env)}
    for variable in variables:
        text = f"{variable.key}={variable.value}"
        if (at := places.get(variable.key)) is None:
            container.env.append(text)
        else:
            container.env[at] = text


def _apply_strings(
    changes: MutableMapping[str, str], target: MutableMapping[str, str]
) -> None:
    for key in changes:
        if key.startswith(REMOVAL):
            target.pop(key.removeprefix(REMOVAL), None)
    for key, value in changes.items():
        if not key.startswith(REMOVAL):
            target[key] = value


def _apply_linux(
    linux: nri_pb2.LinuxContainerAdjustment, container: nri_pb2.LinuxContainer
) -> None:
    replaced = {device.path for device in linux.devices}
    devices = [item for item in container.devices if item.path not in replaced]
    container.ClearField("devices")
    container.devices.extend([*devices, *linux.devices])
    if linux.cgroups_path:
        container.cgroups_path = linux.cgroups_path
    for name in ("oom_score_adj", "io_priority", "seccomp_policy", "scheduler", "rdt"):
        if linux.HasField(name):
            put(getattr(container, name), getattr(linux, name))
    _apply_namespaces(linux.namespaces, container)
    _apply_strings(linux.sysctl, container.sysctl)
    for key, device in linux.net_devices.items():
        if key.startswith(REMOVAL):
            container.net_devices.pop(key.removeprefix(REMOVAL), None)
        else:
            container.net_devices[key].CopyFrom(device)
    if linux.HasField("resources"):
        _apply_new_resources(linux.resources, container.resources)


def _apply_namespaces(
    namespaces: Iterable[nri_pb2.LinuxNamespace], container: nri_pb2.LinuxContainer
) -> None:
    kinds = {namespace.type.removeprefix(REMOVAL) for namespace in namespaces}
    others = [item for item in container.namespaces if item.type not in kinds]
    added = [item for item in namespaces if not item.type.startswith(REMOVAL)]
    container.ClearField("namespaces")
    container.namespaces.extend([*others, *added])


def _apply_new_resources(
    changes: nri_pb2.LinuxResources, resources: nri_pb2.LinuxResources
) -> None:
    for name in _CPU:
        if changes.cpu.HasField(name):
            put(getattr(resources.cpu, name), getattr(changes.cpu, name))
    _apply_common(changes, resources)
    for name in ("blockio_class", "rdt_class", "pids"):
        if changes.HasField(name):
            put(getattr(resources, name), getattr(changes, name))
    resources.devices.extend(changes.devices)


def _apply_common(
    changes: nri_pb2.LinuxResources, resources: nri_pb2.LinuxResources
) -> None:
    for name in ("cpus", "mems"):
        if text := getattr(changes.cpu, name):
            setattr(resources.cpu, name, text)
    # Of memory only the limit is applied, and swap is set to the same.
    if changes.memory.limit.value:
        put(resources.memory.limit, changes.memory.limit)
        put(resources.memory.swap, changes.memory.limit)
    _apply_hugepages(changes.hugepage_limits, resources)
    resources.unified.update(changes.unified)


def _apply_hugepages(
    changes: Iterable[nri_pb2.HugepageLimit], resources: nri_pb2.LinuxResources
) -> None:
    limits = {limit.page_size: limit.limit for limit in resources.hugepage_limits}
    limits |= {limit.page_size: limit.limit for limit in changes}
    resources.ClearField("hugepage_limits")
    for page_size, limit in limits.items():
        resources.hugepage_limits.add(page_size=page_size, limit=limit)


def _apply_mounts(
    mounts: Iterable[nri_pb2.Mount], container: nri_pb2.Container
) -> None:
    by_destination = {mount.destination: mount for mount in container.mounts}
    for mount in mounts:
        if mount.destination.startswith(REMOVAL):
            by_destination.pop(mount.destination.removeprefix(REMOVAL), None)
        else:
            by_destination[mount.destination] = mount
    ordered = sorted(by_destination.values(), key=_depth)
    container.ClearField("mounts")
    container.mounts.extend(ordered)


def _depth(mount: nri_pb2.Mount) -> int:
    return len([part for part in mount.destination.split("/") if part])
