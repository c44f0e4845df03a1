"""The classes that stand for the messages and enumerations of the schema."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from msgspec import Struct

from nri_proto import nri_pb2
from nri_resmgr.stub import model
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.update import ContainerUpdate

# Classes outside of `model`, or with another name than their message.
_RENAMED: Final[Mapping[str, type[Struct]]] = {
    "CDIDevice": model.CdiDevice,
    "ContainerAdjustment": ContainerAdjustment,
    "ContainerUpdate": ContainerUpdate,
    "LinuxCPU": model.LinuxCpu,
    "LinuxDevice": model.Device,
    "LinuxDeviceCgroup": model.DeviceCgroupRule,
    "LinuxIOPriority": model.IoPriority,
    "LinuxMemoryPolicy": model.MemoryPolicy,
    "LinuxNamespace": model.Namespace,
    "LinuxNetDevice": model.NetDevice,
    "LinuxPids": model.Pids,
    "LinuxPodSandbox": model.LinuxPod,
    "LinuxRdt": model.Rdt,
    "LinuxScheduler": model.Scheduler,
    "LinuxSeccomp": model.Seccomp,
    "LinuxSeccompArg": model.SeccompArg,
    "LinuxSyscall": model.SeccompSyscall,
    "POSIXRlimit": model.Rlimit,
    "PodSandbox": model.Pod,
}

VALUES: Final[Mapping[str, type[Struct]]] = MappingProxyType(
    {
        name: kind
        for name in nri_pb2.DESCRIPTOR.message_types_by_name
        if (kind := _RENAMED.get(name) or getattr(model, name, None))
    }
)
ENUMS: Final[Mapping[str, type[IntEnum]]] = MappingProxyType(
    {
        "ContainerState": model.ContainerState,
        "IOPrioClass": model.IoPriorityClass,
        "LinuxSchedulerFlag": model.SchedulerFlag,
        "LinuxSchedulerPolicy": model.SchedulerPolicy,
        "MpolFlag": model.MemoryPolicyFlag,
        "MpolMode": model.MemoryPolicyMode,
        "ProfileType": model.ProfileType,
    }
)

# Parts that plugins build once and send to many containers: their bytes are kept.
SENT_AGAIN: Final = frozenset({"LinuxContainerAdjustment"})


def attribute(field: FieldDescriptor) -> str:
    """Return the name of *field* in the model: lower case, no Python keyword."""
    name = field.name.lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def is_wrapper(message: Descriptor) -> bool:
    """Return whether *message* is an ``Optional...``: absent, or one plain value."""
    return message.name.startswith("Optional")


def is_map(message: Descriptor) -> bool:
    """Return whether *message* is the hidden entry type of a map field."""
    return message.GetOptions().map_entry


@cache
def descriptor_of(kind: type[Struct]) -> Descriptor:
    """Return the descriptor of the message that *kind* stands for.

    Raises:
        KeyError: *kind* stands for no message.
    """
    name = next(
        (name for name, value in VALUES.items() if value is kind), kind.__name__
    )
    return nri_pb2.DESCRIPTOR.message_types_by_name[name]
