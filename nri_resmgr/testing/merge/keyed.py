"""Merges lists and maps with keys, and markers that remove entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Final

from nri_proto import nri_pb2
from nri_resmgr.testing.merge.resources import Claimant

REMOVAL: Final = "-"


def merge_strings(
    claim: tuple[Claimant, int],
    changes: Mapping[str, str],
    seen: MutableMapping[str, str],
    merged: MutableMapping[str, str],
) -> None:
    """Merge annotations or sysctls; removal markers are passed on to the runtime.

    The next plugin still sees entries that are only removed.
    """
    claimant, field = claim
    removed = _removed(changes)
    for key in removed:
        merged[REMOVAL + key] = ""
    for key, value in changes.items():
        if key.startswith(REMOVAL):
            continue
        if key in removed:
            claimant.clear(field, key)
        claimant.claim(field, key)
        seen[key] = value
        merged[key] = value


def merge_mounts(
    claimant: Claimant,
    changes: Iterable[nri_pb2.Mount],
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    """Merge mounts by destination; a lone removal is passed on to the runtime."""
    mounts = {mount.destination: mount for mount in changes}
    removed = _removed(mounts)
    for key in removed & {mount.destination for mount in merged.mounts}:
        claimant.clear(nri_pb2.Mounts, key)
    keep = [mount for mount in merged.mounts if mount.destination not in removed]
    seen = [
        mount
        for mount in container.mounts
        if mount.destination not in removed | mounts.keys()
    ]
    added = [mount for mount in changes if not mount.destination.startswith(REMOVAL)]
    for mount in added:
        claimant.claim(nri_pb2.Mounts, mount.destination)
    lone = [mounts[REMOVAL + key] for key in removed if key not in mounts]
    merged.ClearField("mounts")
    merged.mounts.extend([*keep, *added, *lone])
    container.ClearField("mounts")
    container.mounts.extend([*seen, *added])


def merge_env(
    claimant: Claimant,
    changes: Iterable[nri_pb2.KeyValue],
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    """Merge variables by name; a lone removal is lost, in every release."""
    names = {variable.key for variable in changes}
    removed = _removed(names)
    for key in removed & {variable.key for variable in merged.env}:
        claimant.clear(nri_pb2.Env, key)
    keep = [variable for variable in merged.env if variable.key not in removed]
    seen = [
        text for text in container.env if text.partition("=")[0] not in removed | names
    ]
    added = [variable for variable in changes if not variable.key.startswith(REMOVAL)]
    for variable in added:
        claimant.claim(nri_pb2.Env, variable.key)
    merged.ClearField("env")
    merged.env.extend([*keep, *added])
    container.env[:] = [*seen, *(f"{item.key}={item.value}" for item in added)]


def merge_devices(
    claimant: Claimant,
    changes: Iterable[nri_pb2.LinuxDevice],
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    """Merge devices by path; a lone removal is lost, in every release."""
    paths = {device.path for device in changes}
    if not paths:
        return
    removed = _removed(paths)
    for key in removed & {device.path for device in merged.linux.devices}:
        claimant.clear(nri_pb2.Devices, key)
    keep = [item for item in merged.linux.devices if item.path not in removed]
    seen = [
        device
        for device in container.linux.devices
        if device.path not in removed | paths
    ]
    added = [device for device in changes if not device.path.startswith(REMOVAL)]
    for device in added:
        claimant.claim(nri_pb2.Devices, device.path)
    merged.linux.ClearField("devices")
    merged.linux.devices.extend([*keep, *added])
    container.linux.ClearField("devices")
    container.linux.devices.extend([*seen, *added])


def merge_namespaces(
    claimant: Claimant,
    changes: Iterable[nri_pb2.LinuxNamespace],
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    """Merge namespaces by type; a removal claims it, so no other plugin can set it."""
    for namespace in changes:
        kind = namespace.type.removeprefix(REMOVAL)
        claimant.claim(nri_pb2.Namespace, kind)
        others = [item for item in container.linux.namespaces if item.type != kind]
        container.linux.ClearField("namespaces")
        container.linux.namespaces.extend(others)
        if kind == namespace.type:
            container.linux.namespaces.append(namespace)
        merged.linux.namespaces.append(namespace)


def _removed(keys: Iterable[str]) -> set[str]:
    return {key.removeprefix(REMOVAL) for key in keys if key.startswith(REMOVAL)}
