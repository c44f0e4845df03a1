"""Merges lists and maps with keys, and markers that remove entries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableMapping
from typing import Final

from nri_proto import nri_pb2
from nri_resmgr.testing.merge.resources import Claimant

REMOVAL: Final = "-"


def merge_strings(
    claimant: Claimant,
    field: int,
    changes: Mapping[str, str],
    seen: MutableMapping[str, str],
    merged: MutableMapping[str, str],
) -> None:
    """Merge annotations or sysctls; removal markers are passed on to the runtime.

    The next plugin still sees entries that are only removed.
    """
    for key in _claim_keys(claimant, field, changes, changes):
        merged[REMOVAL + key] = ""
    for key, value in changes.items():
        if not key.startswith(REMOVAL):
            seen[key] = merged[key] = value


def merge_net_devices(
    claimant: Claimant,
    changes: Mapping[str, nri_pb2.LinuxNetDevice],
    container: nri_pb2.LinuxContainer,
    merged: nri_pb2.LinuxContainerAdjustment,
) -> None:
    """Merge network devices as `merge_strings` does."""
    for key in _claim_keys(claimant, nri_pb2.LinuxNetDevices, changes, changes):
        merged.net_devices[REMOVAL + key].SetInParent()
    for key, device in changes.items():
        if not key.startswith(REMOVAL):
            container.net_devices[key].CopyFrom(device)
            merged.net_devices[key].CopyFrom(device)


def merge_mounts(
    claimant: Claimant,
    changes: Iterable[nri_pb2.Mount],
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    """Merge mounts by destination; a lone removal is passed on to the runtime."""
    mounts = {mount.destination: mount for mount in changes}
    keys = [mount.destination for mount in changes]
    before = [mount.destination for mount in merged.mounts]
    removed = _claim_keys(claimant, nri_pb2.Mounts, keys, before)
    kept = [mount for mount in merged.mounts if mount.destination not in removed]
    gone = removed | mounts.keys()
    seen = [mount for mount in container.mounts if mount.destination not in gone]
    added = [mount for mount in changes if not mount.destination.startswith(REMOVAL)]
    lone = [mounts[REMOVAL + key] for key in removed if key not in mounts]
    merged.ClearField("mounts")
    merged.mounts.extend([*kept, *added, *lone])
    container.ClearField("mounts")
    container.mounts.extend([*seen, *added])


def merge_env(
    claimant: Claimant,
    changes: Iterable[nri_pb2.KeyValue],
    container: nri_pb2.Container,
    merged: nri_pb2.ContainerAdjustment,
) -> None:
    """Merge variables by name; a lone removal is lost, in every release."""
    names = [variable.key for variable in changes]
    before = [variable.key for variable in merged.env]
    removed = _claim_keys(claimant, nri_pb2.Env, names, before)
    kept = [variable for variable in merged.env if variable.key not in removed]
    gone = removed.union(names)
    seen = [text for text in container.env if text.partition("=")[0] not in gone]
    added = [variable for variable in changes if not variable.key.startswith(REMOVAL)]
    merged.ClearField("env")
    merged.env.extend([*kept, *added])
    container.env[:] = [*seen, *(f"{item.key}={item.value}" for item in added)]


def merge_devices(
    claimant: Claimant,
    changes: Iterable[nri_pb2.LinuxDevice],
    container: nri_pb2.LinuxContainer,
    merged: nri_pb2.LinuxContainerAdjustment,
) -> None:
    """Merge devices by path; a lone removal is lost, in every release."""
    paths = [device.path for device in changes]
    before = [device.path for device in merged.devices]
    removed = _claim_keys(claimant, nri_pb2.Devices, paths, before)
    kept = [device for device in merged.devices if device.path not in removed]
    gone = removed.union(paths)
    seen = [device for device in container.devices if device.path not in gone]
    added = [device for device in changes if not device.path.startswith(REMOVAL)]
    merged.ClearField("devices")
    merged.devices.extend([*kept, *added])
    container.ClearField("devices")
    container.devices.extend([*seen, *added])


def merge_namespaces(
    claimant: Claimant,
    changes: Iterable[nri_pb2.LinuxNamespace],
    container: nri_pb2.LinuxContainer,
    merged: nri_pb2.LinuxContainerAdjustment,
) -> None:
    """Merge namespaces by type; a removal claims it, so no other plugin can set it."""
    for namespace in changes:
        kind = namespace.type.removeprefix(REMOVAL)
        claimant.claim(nri_pb2.Namespace, kind)
        others = [item for item in container.namespaces if item.type != kind]
        container.ClearField("namespaces")
        container.namespaces.extend(others)
        if kind == namespace.type:
            container.namespaces.append(namespace)
        merged.namespaces.append(namespace)


def _claim_keys(
    claimant: Claimant, field: int, keys: Collection[str], clearable: Collection[str]
) -> set[str]:
    """Claim the keys of a reply; return those that it removes.

    Only of *clearable* keys a removal also removes the owner.
    """
    removed = {key.removeprefix(REMOVAL) for key in keys if key.startswith(REMOVAL)}
    for key in removed.intersection(clearable):
        claimant.clear(field, key)
    for key in keys:
        if not key.startswith(REMOVAL):
            claimant.claim(field, key)
    return removed
