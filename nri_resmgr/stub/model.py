"""Pods, containers and their parts as frozen values, named as in the schema.

There is no I/O and no protobuf in here. None is "absent" and 0 is "present and zero".
Repeated fields are tuples. Maps read from a runtime are read-only; a value with a map
in it cannot be hashed. Every field has a default, so a test of a plugin can write
``Container(name="web")``.

Enumerations are without the schema's prefixes. An unknown number of a newer runtime
stays a plain int.

In `LinuxResources` and its parts None leaves a value unchanged. In values from the
kubelet (pod overhead and resources, UpdateContainer) 0 means "not specified".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec

from nri_resmgr.stub.contents import EMPTY


class ContainerState(IntEnum):
    """State of a container; UNKNOWN in CreateContainer and several other events."""

    UNKNOWN = 0
    CREATED = 1
    PAUSED = 2
    RUNNING = 3
    STOPPED = 4


class ProfileType(IntEnum):
    """Origin of a seccomp profile."""

    RUNTIME_DEFAULT = 0
    UNCONFINED = 1
    LOCALHOST = 2


class IoPriorityClass(IntEnum):
    """Classes of ioprio_set(2); NONE in an adjustment removes the priority."""

    NONE = 0
    RT = 1
    BE = 2
    IDLE = 3


class SchedulerPolicy(IntEnum):
    """Scheduling policies of sched(7)."""

    NONE = 0
    OTHER = 1
    FIFO = 2
    RR = 3
    BATCH = 4
    ISO = 5
    IDLE = 6
    DEADLINE = 7


class SchedulerFlag(IntEnum):
    """Flags of sched_setattr(2), numbered by NRI, not as the kernel's bits."""

    RESET_ON_FORK = 0
    RECLAIM = 1
    DL_OVERRUN = 2
    KEEP_POLICY = 3
    KEEP_PARAMS = 4
    UTIL_CLAMP_MIN = 5
    UTIL_CLAMP_MAX = 6


class MemoryPolicyMode(IntEnum):
    """Modes of set_mempolicy(2)."""

    DEFAULT = 0
    PREFERRED = 1
    BIND = 2
    INTERLEAVE = 3
    LOCAL = 4
    PREFERRED_MANY = 5
    WEIGHTED_INTERLEAVE = 6


class MemoryPolicyFlag(IntEnum):
    """Mode flags of set_mempolicy(2), numbered by NRI, not as the kernel's bits."""

    STATIC_NODES = 0
    RELATIVE_NODES = 1
    NUMA_BALANCING = 2


class AdjustedField(IntEnum):
    """Fields that a plugin can own in one request: the schema's enum ``Field``."""

    NONE = 0
    ANNOTATIONS = 1
    MOUNTS = 2
    OCI_HOOKS = 3
    DEVICES = 4
    CDI_DEVICES = 5
    ENV = 6
    ARGS = 7
    MEM_LIMIT = 8
    MEM_RESERVATION = 9
    MEM_SWAP_LIMIT = 10
    MEM_KERNEL_LIMIT = 11
    MEM_TCP_LIMIT = 12
    MEM_SWAPPINESS = 13
    MEM_DISABLE_OOM_KILLER = 14
    MEM_USE_HIERARCHY = 15
    CPU_SHARES = 16
    CPU_QUOTA = 17
    CPU_PERIOD = 18
    CPU_REALTIME_RUNTIME = 19
    CPU_REALTIME_PERIOD = 20
    CPU_SET_CPUS = 21
    CPU_SET_MEMS = 22
    PIDS_LIMIT = 23
    HUGEPAGE_LIMITS = 24
    BLOCKIO_CLASS = 25
    RDT_CLASS = 26
    CGROUPS_UNIFIED = 27
    CGROUPS_PATH = 28
    OOM_SCORE_ADJ = 29
    RLIMITS = 30
    IO_PRIORITY = 31
    SECCOMP_POLICY = 32
    NAMESPACE = 33
    SYSCTL = 34
    LINUX_NET_DEVICES = 35
    LINUX_SCHED = 36
    RDT_CLOS_ID = 37
    RDT_SCHEMATA = 38
    RDT_ENABLE_MONITORING = 39
    MEMORY_POLICY = 40


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


class LinuxPod(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of a pod.

    `pod_overhead` and `pod_resources` are what the kubelet reported at creation: sums
    over all containers as cgroup values. Runtimes do not update them later.
    """

    pod_overhead: LinuxResources | None = None
    pod_resources: LinuxResources | None = None
    cgroup_parent: str = ""
    cgroups_path: str = ""
    namespaces: tuple[Namespace, ...] = ()
    resources: LinuxResources | None = None


class Pod(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A pod sandbox; in stop and remove events it may have only its id."""

    id: str = ""
    name: str = ""
    uid: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    runtime_handler: str = ""
    linux: LinuxPod | None = None
    pid: int = 0
    ips: tuple[str, ...] = ()


class Image(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The image of a container; runtimes send it from NRI 0.12.2 on."""

    name: str = ""
    digest: str = ""
    config_digest: str = ""


class User(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """User and groups of the container's first process."""

    uid: int = 0
    gid: int = 0
    additional_gids: tuple[int, ...] = ()


class LinuxContainer(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of a container."""

    namespaces: tuple[Namespace, ...] = ()
    devices: tuple[Device, ...] = ()
    resources: LinuxResources | None = None
    oom_score_adj: int | None = None
    cgroups_path: str = ""
    io_priority: IoPriority | None = None
    seccomp_profile: SecurityProfile | None = None
    seccomp_policy: Seccomp | None = None
    sysctl: Mapping[str, str] = EMPTY
    net_devices: Mapping[str, NetDevice] = EMPTY
    scheduler: Scheduler | None = None
    rdt: Rdt | None = None


class Container(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A container; times are UNIX nanoseconds, `env` entries are "NAME=value".

    Do not rely on `state` (UNKNOWN in several events), `pid` (0 before the start) or
    `name` (empty for some clients): which fields are set depends on the runtime.

    >>> Container(name="web", env=("A=1", "B=x=y")).environment["B"]
    'x=y'
    """

    id: str = ""
    pod_sandbox_id: str = ""
    name: str = ""
    state: ContainerState | int = ContainerState.UNKNOWN
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: Hooks | None = None
    linux: LinuxContainer | None = None
    pid: int = 0
    rlimits: tuple[Rlimit, ...] = ()
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    status_reason: str = ""
    status_message: str = ""
    cdi_devices: tuple[CdiDevice, ...] = ()
    user: User | None = None
    image: Image | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment by name; the last entry of a name wins."""
        return {
            name: value
            for name, _, value in (entry.partition("=") for entry in self.env)
        }

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources; all absent if the runtime reported none."""
        return (self.linux and self.linux.resources) or LinuxResources()

    @property
    def cpu(self) -> LinuxCpu:
        """CPU controls; all absent if the runtime reported none."""
        return self.resources.cpu or LinuxCpu()

    @property
    def memory(self) -> LinuxMemory:
        """Memory controls; all absent if the runtime reported none."""
        return self.resources.memory or LinuxMemory()


class KeyValue(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An environment variable in an adjustment; a key "-NAME" is a removal mark."""

    key: str = ""
    value: str = ""


class LinuxContainerAdjustment(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of an adjustment; keys with "-" in front are removal marks."""

    devices: tuple[Device, ...] = ()
    resources: LinuxResources | None = None
    cgroups_path: str = ""
    oom_score_adj: int | None = None
    io_priority: IoPriority | None = None
    seccomp_policy: Seccomp | None = None
    namespaces: tuple[Namespace, ...] = ()
    sysctl: Mapping[str, str] = EMPTY
    net_devices: Mapping[str, NetDevice] = EMPTY
    scheduler: Scheduler | None = None
    rdt: Rdt | None = None
    memory_policy: MemoryPolicy | None = None


class LinuxContainerUpdate(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The Linux part of an update, which has no other part."""

    resources: LinuxResources | None = None


class ContainerEviction(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A request to evict a container; present runtimes ignore it."""

    container_id: str = ""
    reason: str = ""


class PluginInstance(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A plugin that was called for the request; `index` is two digits."""

    name: str = ""
    index: str = ""


class CompoundFieldOwners(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Each key of a compound field with the plugin that set it."""

    owners: Mapping[str, str] = EMPTY


class FieldOwners(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The owners of one container's fields, by the numbers of `AdjustedField`."""

    simple: Mapping[int, str] = EMPTY
    compound: Mapping[int, CompoundFieldOwners] = EMPTY


class OwningPlugins(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Field owners by container id; a plugin with "-" in front cleared the field."""

    owners: Mapping[str, FieldOwners] = EMPTY
