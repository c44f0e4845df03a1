"""Pods, containers and their parts as frozen values, named as in the schema.

Computations only, no I/O and no protobuf. None is "absent" and 0 is "present and
zero"; repeated fields are tuples. Maps read from a runtime cannot be changed; a value
with a map in it cannot be hashed. Every field has a default, so a test of a plugin
writes ``Container(name="web")``.
"""

from nri_resmgr.stub.model.changes import (
    ContainerEviction,
    KeyValue,
    LinuxContainerAdjustment,
    LinuxContainerUpdate,
)
from nri_resmgr.stub.model.container import Container, Image, LinuxContainer, User
from nri_resmgr.stub.model.enums import (
    AdjustedField,
    ContainerState,
    IoPriorityClass,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    ProfileType,
    SchedulerFlag,
    SchedulerPolicy,
)
from nri_resmgr.stub.model.oci import (
    CdiDevice,
    Device,
    Hook,
    Hooks,
    Mount,
    Namespace,
    NetDevice,
    Rlimit,
)
from nri_resmgr.stub.model.pod import LinuxPod, Pod
from nri_resmgr.stub.model.resources import (
    DeviceCgroupRule,
    HugepageLimit,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pids,
)
from nri_resmgr.stub.model.scheduling import IoPriority, MemoryPolicy, Rdt, Scheduler
from nri_resmgr.stub.model.seccomp import (
    Seccomp,
    SeccompArg,
    SeccompSyscall,
    SecurityProfile,
)
from nri_resmgr.stub.model.validation import (
    CompoundFieldOwners,
    FieldOwners,
    OwningPlugins,
    PluginInstance,
)

__all__ = [
    "AdjustedField",
    "CdiDevice",
    "CompoundFieldOwners",
    "Container",
    "ContainerEviction",
    "ContainerState",
    "Device",
    "DeviceCgroupRule",
    "FieldOwners",
    "Hook",
    "Hooks",
    "HugepageLimit",
    "Image",
    "IoPriority",
    "IoPriorityClass",
    "KeyValue",
    "LinuxContainer",
    "LinuxContainerAdjustment",
    "LinuxContainerUpdate",
    "LinuxCpu",
    "LinuxMemory",
    "LinuxPod",
    "LinuxResources",
    "MemoryPolicy",
    "MemoryPolicyFlag",
    "MemoryPolicyMode",
    "Mount",
    "Namespace",
    "NetDevice",
    "OwningPlugins",
    "Pids",
    "PluginInstance",
    "Pod",
    "ProfileType",
    "Rdt",
    "Rlimit",
    "Scheduler",
    "SchedulerFlag",
    "SchedulerPolicy",
    "Seccomp",
    "SeccompArg",
    "SeccompSyscall",
    "SecurityProfile",
    "User",
]
