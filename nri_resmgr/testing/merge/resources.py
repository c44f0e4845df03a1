"""Merges the resources of one reply, and claims each field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_resmgr.testing.merge.owners import Owners

# Optional wrappers, which may be absent.
_MEMORY: Final = (
    ("limit", nri_pb2.MemLimit),
    ("reservation", nri_pb2.MemReservation),
    ("swap", nri_pb2.MemSwapLimit),
    ("kernel", nri_pb2.MemKernelLimit),
    ("kernel_tcp", nri_pb2.MemTCPLimit),
    ("swappiness", nri_pb2.MemSwappiness),
    ("disable_oom_killer", nri_pb2.MemDisableOomKiller),
    ("use_hierarchy", nri_pb2.MemUseHierarchy),
)
_CPU: Final = (
    ("shares", nri_pb2.CPUShares),
    ("quota", nri_pb2.CPUQuota),
    ("period", nri_pb2.CPUPeriod),
    ("realtime_runtime", nri_pb2.CPURealtimeRuntime),
    ("realtime_period", nri_pb2.CPURealtimePeriod),
)
# Plain strings: empty is unset.
_CPU_LISTS: Final = (("cpus", nri_pb2.CPUSetCPUs), ("mems", nri_pb2.CPUSetMems))
_CLASSES: Final = (
    ("blockio_class", nri_pb2.BlockioClass),
    ("rdt_class", nri_pb2.RdtClass),
)


class Claimant(msgspec.Struct, frozen=True):
    """A plugin that sets fields of a container.

    Attributes:
        owners: Keeps its claims.
        plugin: Full name of the plugin.
    """

    owners: Owners
    container_id: str
    plugin: str

    def claim(self, field: int, key: str | None = None) -> None:
        """Claim a field or a key; see `Owners.claim`."""
        self.owners.claim(self.container_id, field, self.plugin, key)

    def clear(self, field: int, key: str | None = None) -> None:
        """Remove the owner of a field or a key; see `Owners.clear`."""
        self.owners.clear(self.container_id, field, self.plugin, key)


def merge_resources(
    claimant: Claimant,
    changes: nri_pb2.LinuxResources,
    *targets: nri_pb2.LinuxResources,
) -> None:
    """Claim the fields that are set in *changes*, and copy them to all targets.

    After a conflict the targets keep the fields that were copied before it.

    Raises:
        FieldConflict: A field has an owner.
    """
    for part, fields in (("memory", _MEMORY), ("cpu", _CPU)):
        if changes.HasField(part):
            sources = [getattr(target, part) for target in targets]
            _merge_present(claimant, fields, getattr(changes, part), sources)
    _merge_cpu_lists(claimant, changes, targets)
    _merge_keyed(claimant, changes, targets)
    _merge_present(claimant, _CLASSES, changes, targets)
    _merge_present(claimant, (("pids", nri_pb2.PidsLimit),), changes, targets)
    for target in targets:
        target.devices.extend(changes.devices)  # rules add up, without owners


def _merge_cpu_lists(
    claimant: Claimant,
    changes: nri_pb2.LinuxResources,
    targets: Sequence[nri_pb2.LinuxResources],
) -> None:
    for name, field in _CPU_LISTS:
        if text := getattr(changes.cpu, name):
            claimant.claim(field)
            for target in targets:
                setattr(target.cpu, name, text)


def _merge_keyed(
    claimant: Claimant,
    changes: nri_pb2.LinuxResources,
    targets: Sequence[nri_pb2.LinuxResources],
) -> None:
    for limit in changes.hugepage_limits:
        claimant.claim(nri_pb2.HugepageLimits, limit.page_size)
        for target in targets:
            target.hugepage_limits.append(limit)
    for key, value in changes.unified.items():
        claimant.claim(nri_pb2.CgroupsUnified, key)
        for target in targets:
            target.unified[key] = value


def _merge_present(
    claimant: Claimant,
    fields: Sequence[tuple[str, int]],
    changes: Message,
    targets: Sequence[Message],
) -> None:
    for name, field in fields:
        if changes.HasField(name):
            claimant.claim(field)
            for target in targets:
                put(getattr(target, name), getattr(changes, name))


def put(target: Message, source: Message) -> None:
    """Replace a sub-message; an empty one is set, too."""
    target.SetInParent()
    target.CopyFrom(source)
