"""Differences of older releases of NRI in reading and merging adjustments."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.testing.merge.keyed import REMOVAL

# First level that reads the field; earlier ones skip it as unknown.
# Source: nri, the releases' api.proto and result.go.
_SINCE: Final = (
    (NriLevel(0, 4), "rlimits"),
    (NriLevel(0, 7), "CDI_devices"),
    (NriLevel(0, 7), "linux.oom_score_adj"),
    (NriLevel(0, 7), "linux.resources.pids"),
    (NriLevel(0, 10), "args"),
    (NriLevel(0, 10), "linux.io_priority"),
    (NriLevel(0, 10), "linux.seccomp_policy"),
    (NriLevel(0, 10), "linux.namespaces"),
    (NriLevel(0, 10), "linux.resources.devices"),
    (NriLevel(0, 11), "linux.sysctl"),
    (NriLevel(0, 11), "linux.net_devices"),
    (NriLevel(0, 11), "linux.scheduler"),
    (NriLevel(0, 11), "linux.rdt"),
    (NriLevel(0, 12), "linux.memory_policy"),
)
_MOUNT_REMOVAL: Final = NriLevel(0, 7)
_SYSCTL_REMOVAL: Final = NriLevel(0, 13)


def as_read(
    adjustment: nri_pb2.ContainerAdjustment, level: NriLevel
) -> nri_pb2.ContainerAdjustment:
    """Return the part of an adjustment that a runtime of this level reads."""
    read = nri_pb2.ContainerAdjustment()
    read.CopyFrom(adjustment)
    for since, path in _SINCE:
        if level < since:
            _clear(read, path)
    return read


def as_merged(merged: nri_pb2.ContainerAdjustment, level: NriLevel) -> None:
    """Apply the defects of a level to a merged adjustment.

    Before 0.7 removed mounts stay. From 0.11 until after 0.12.2 the marker that
    removes a sysctl becomes an annotation, unless the sysctl is set, too.
    """
    if level < _MOUNT_REMOVAL:
        kept = [item for item in merged.mounts if item.destination[:1] != REMOVAL]
        merged.ClearField("mounts")
        merged.mounts.extend(kept)
    if level < _SYSCTL_REMOVAL and merged.HasField("linux"):
        sysctl = merged.linux.sysctl
        for key in [key for key in sysctl if key.startswith(REMOVAL)]:
            if key.removeprefix(REMOVAL) not in sysctl:
                del sysctl[key]
                merged.annotations[key] = ""
    if not merged.linux.ByteSize():
        merged.ClearField("linux")  # Go leaves an empty part unset


def _clear(message: Message, path: str) -> None:
    head, _, rest = path.partition(".")
    if not rest:
        message.ClearField(head)
    elif message.HasField(head):
        _clear(getattr(message, head), rest)
