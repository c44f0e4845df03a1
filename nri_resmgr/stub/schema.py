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

VALUES: Final[Mapping[str, type[Struct]]] = MappingProxyType(
    {
        "CDIDevice": model.CdiDevice,
        "CompoundFieldOwners": model.CompoundFieldOwners,
        "Container": model.Container,
        "ContainerAdjustment": ContainerAdjustment,
        "ContainerEviction": model.ContainerEviction,
        "ContainerUpdate": ContainerUpdate,
        "FieldOwners": model.FieldOwners,
        "Hook": model.Hook,
        "Hooks": model.Hooks,
        "HugepageLimit": model.HugepageLimit,
        "Image": model.Image,
        "KeyValue": model.KeyValue,
        "LinuxCPU": model.LinuxCpu,
        "LinuxContainer": model.LinuxContainer,
        "LinuxContainerAdjustment": model.LinuxContainerAdjustment,
        "LinuxContainerUpdate": model.LinuxContainerUpdate,
        "LinuxDevice": model.Device,
        "LinuxDeviceCgroup": model.DeviceCgroupRule,
        "LinuxIOPriority": model.IoPriority,
        "LinuxMemory": model.LinuxMemory,
        "LinuxMemoryPolicy": model.MemoryPolicy,
        "LinuxNamespace": model.Namespace,
        "LinuxNetDevice": model.NetDevice,
        "LinuxPids": model.Pids,
        "LinuxPodSandbox": model.LinuxPod,
        "LinuxRdt": model.Rdt,
        "LinuxResources": model.LinuxResources,
        "LinuxScheduler": model.Scheduler,
        "LinuxSeccomp": model.Seccomp,
        "LinuxSeccompArg": model.SeccompArg,
        "LinuxSyscall": model.SeccompSyscall,
        "Mount": model.Mount,
        "OwningPlugins": model.OwningPlugins,
        "POSIXRlimit": model.Rlimit,
        "PluginInstance": model.PluginInstance,
        "PodSandbox": model.Pod,
        "SecurityProfile": model.SecurityProfile,
        "User": model.User,
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
