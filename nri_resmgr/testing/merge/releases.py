"""What older releases of NRI make of an adjustment."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.testing.merge.keyed import REMOVAL

# First level that reads the field; what came before skips it as unknown.
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
    """Return what a runtime of that level reads out of an adjustment."""
    read = nri_pb2.ContainerAdjustment()
    read.CopyFrom(adjustment)
    for since, path in _SINCE:
        if level < since:
            _clear(read, path)
    return read


def as_merged(merged: nri_pb2.ContainerAdjustment, level: NriLevel) -> None:
    """Put the defects of a level into a merged adjustment.

    Before 0.7 removed mounts stay. From 0.11 until after 0.12.2 the mark that
    removes a sysctl ends up among the annotations, unless the sysctl is set too.
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
        merged.ClearField("linux")  # a part that says nothing is not there


def _clear(message: Message, path: str) -> None:
    head, _, rest = path.partition(".")
    if not rest:
        message.ClearField(head)
    elif message.HasField(head):
        _clear(getattr(message, head), rest)
