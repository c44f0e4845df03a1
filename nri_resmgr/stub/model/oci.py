"""Parts of an OCI spec: mounts, hooks, devices, resources, scheduling, seccomp.

In `LinuxResources` and its parts None is "absent", which leaves a value unchanged; 0
is present. In values from the kubelet (pod overhead and resources, UpdateContainer) 0
means "not specified".
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY
from nri_resmgr.stub.model.enums import (
    IoPriorityClass,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    ProfileType,
    SchedulerFlag,
    SchedulerPolicy,
)


class Mount(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A mount of a container; its key is `destination`."""

    destination: str = ""
    type: str = ""
    source: str = ""
    options: tuple[str, ...] = ()


class Hook(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A program that the OCI runtime runs; `timeout` in seconds."""

    path: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class Hooks(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """OCI hooks by the step of the container's lifecycle that runs them."""

    prestart: tuple[Hook, ...] = ()
    create_runtime: tuple[Hook, ...] = ()
    create_container: tuple[Hook, ...] = ()
    start_container: tuple[Hook, ...] = ()
    poststart: tuple[Hook, ...] = ()
    poststop: tuple[Hook, ...] = ()


class Rlimit(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A limit of setrlimit(2); its key is `type` ("RLIMIT_NOFILE")."""

    type: str = ""
    hard: int = 0
    soft: int = 0


class Namespace(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A namespace; its key is `type` in OCI spelling, without a path it is new."""

    type: str = ""
    path: str = ""


class Device(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A device node; its key is `path`. None leaves mode and owner to the runtime."""

    path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    uid: int | None = None
    gid: int | None = None


class CdiDevice(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A device by its CDI name, "vendor.com/class=name"."""

    name: str = ""


class NetDevice(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The name of a network device inside the container."""

    name: str = ""


class LinuxMemory(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Memory controls in bytes; at creation runtimes apply only `limit`.

    `swappiness` is 0 to 100.
    """

    limit: int | None = None
    reservation: int | None = None
    swap: int | None = None
    kernel: int | None = None
    kernel_tcp: int | None = None
    swappiness: int | None = None
    disable_oom_killer: bool | None = None
    use_hierarchy: bool | None = None


class LinuxCpu(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """CPU controls; times are in microseconds.

    `cpus` and `mems` are in the kernel's list format. They have no presence on the
    wire: "" is "unchanged", never "none".
    """

    shares: int | None = None
    quota: int | None = None
    period: int | None = None
    realtime_runtime: int | None = None
    realtime_period: int | None = None
    cpus: str = ""
    mems: str = ""


class HugepageLimit(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A limit in bytes for huge pages of `page_size`, such as "2MB"."""

    page_size: str = ""
    limit: int = 0


class DeviceCgroupRule(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A rule of the device cgroup; None as `major` or `minor` matches all."""

    allow: bool = False
    type: str = ""
    major: int | None = None
    minor: int | None = None
    access: str = ""


class Pids(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The maximum number of tasks; -1 is unlimited."""

    limit: int = 0


class LinuxResources(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Resources of a pod or container; a class name "" clears the class."""

    memory: LinuxMemory | None = None
    cpu: LinuxCpu | None = None
    hugepage_limits: tuple[HugepageLimit, ...] = ()
    blockio_class: str | None = None
    rdt_class: str | None = None
    unified: Mapping[str, str] = EMPTY
    devices: tuple[DeviceCgroupRule, ...] = ()
    pids: Pids | None = None


class IoPriority(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An I/O priority of ioprio_set(2); `class_` is the schema's `class`."""

    class_: IoPriorityClass | int = IoPriorityClass.NONE
    priority: int = 0


class Scheduler(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Scheduling of sched_setattr(2); times in nanoseconds, for the deadline policy."""

    policy: SchedulerPolicy | int = SchedulerPolicy.NONE
    nice: int = 0
    priority: int = 0
    flags: tuple[SchedulerFlag | int, ...] = ()
    runtime: int = 0
    deadline: int = 0
    period: int = 0


class MemoryPolicy(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A memory policy of set_mempolicy(2), `nodes` in the kernel's list format."""

    mode: MemoryPolicyMode | int = MemoryPolicyMode.DEFAULT
    nodes: str = ""
    flags: tuple[MemoryPolicyFlag | int, ...] = ()


class Rdt(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A resctrl group; `remove` discards what earlier plugins set."""

    clos_id: str | None = None
    schemata: tuple[str, ...] | None = None
    enable_monitoring: bool | None = None
    remove: bool = False


class SecurityProfile(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The seccomp profile that the pod requests."""

    profile_type: ProfileType | int = ProfileType.RUNTIME_DEFAULT
    localhost_ref: str = ""


class SeccompArg(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A condition on argument number `index` of a system call."""

    index: int = 0
    value: int = 0
    value_two: int = 0
    op: str = ""


class SeccompSyscall(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The action for some system calls."""

    names: tuple[str, ...] = ()
    action: str = ""
    errno_ret: int | None = None
    args: tuple[SeccompArg, ...] = ()


class Seccomp(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A complete seccomp filter in OCI spelling: SCMP_ACT_ALLOW, SCMP_ARCH_X86_64.

    Runtimes ignore `default_errno`.
    """

    default_action: str = ""
    default_errno: int | None = None
    architectures: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    listener_path: str = ""
    listener_metadata: str = ""
    syscalls: tuple[SeccompSyscall, ...] = ()
