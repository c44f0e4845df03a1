"""Injects devices, mounts and the like into containers by annotations of their pods."""

from __future__ import annotations

import enum
from typing import Annotated, Final, Literal, TypeVar

import msgspec
import structlog

from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.sdk.annotations import BadAnnotation
from nri_resmgr.sdk.conversion import convert
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    Device,
    InputError,
    IoPriority,
    IoPriorityClass,
    MemoryPolicy,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    Mount,
    Pod,
    ReplyError,
    RequestRejected,
    Scheduler,
    SchedulerFlag,
    SchedulerPolicy,
    serve,
)
from nri_resmgr.values.annotations import by_scope
from nri_resmgr.values.shorten import shortened

log = structlog.get_logger(__name__)

T = TypeVar("T")
EnumT = TypeVar("EnumT", bound=enum.IntEnum)

# Of two keys of one scope the first one counts.
DOMAINS: Final = ("noderesource.dev", "nri.io")
WITHOUT_OLD_KEY: Final = "sysctl"

SHOWN: Final = 80  # characters of a wrong text

Number = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping in an annotation."""


class DeviceEntry(Entry, frozen=True):
    """A device node; 0 leaves mode and owner to the runtime."""

    path: str
    type: Literal["b", "c", "p", "u"]
    major: Number
    minor: Number
    file_mode: Number = 0
    uid: Number = 0
    gid: Number = 0


class MountEntry(Entry, frozen=True):
    """A mount of the OCI spec."""

    source: str
    destination: str
    type: str = ""
    options: tuple[str, ...] = ()


class NetDeviceEntry(Entry, frozen=True):
    """A network device of the host, and its name in the container."""

    host_if: str = msgspec.field(name="hostIf")
    name: str = ""


class IoPriorityEntry(Entry, frozen=True):
    """An I/O priority of ioprio_set(2)."""

    class_: str = msgspec.field(name="class")
    priority: Annotated[int, msgspec.Meta(ge=0, le=7)] = 0


class SchedulerEntry(Entry, frozen=True):
    """Scheduling of sched_setattr(2)."""

    policy: str
    nice: Annotated[int, msgspec.Meta(ge=-20, le=19)] = 0
    priority: Annotated[int, msgspec.Meta(ge=0, le=99)] = 0
    flags: tuple[str, ...] = ()
    runtime: Nanoseconds = 0
    deadline: Nanoseconds = 0
    period: Nanoseconds = 0


class MemoryPolicyEntry(Entry, frozen=True):
    """A memory policy of set_mempolicy(2)."""

    mode: str
    nodes: str = ""
    flags: tuple[str, ...] = ()


class Annotations:
    """The annotations of a pod as they count for one of its containers."""

    def __init__(self, pod: Pod, container: Container) -> None:
        self._pod = pod
        self._container = container

    def read(self, subject: str, kind: type[T]) -> T | None:
        """Return what the pod has for a subject; None for nothing or an empty text.

        Raises:
            BadAnnotation: It is not YAML, or has another form.
        """
        domains = DOMAINS[:1] if subject == WITHOUT_OLD_KEY else DOMAINS
        keys = tuple([f"{subject}.{domain}" for domain in domains])
        name = self._container.name
        if not (found := by_scope(self._pod.annotations, keys, name)):
            return None
        one = found[0][0]
        try:
            document = parse_yaml(one.value, references=False)
            return None if document is None else convert(document, kind)
        except InputError as error:
            title = f"{self._pod.namespace}/{self._pod.name}"
            why = str(error)
            raise BadAnnotation(title, name, one.key, one.value, why) from None


class DeviceInjector(CreateContainerHandler):
    """The plugin."""

    def create_container(self, pod: Pod, container: Container) -> ContainerAdjustment:
        """Return all that the pod wants to have injected into the container."""
        annotations = Annotations(pod, container)
        try:
            return with_kernel_settings(with_files(annotations), annotations)
        except BadAnnotation:
            raise
        except (InputError, ReplyError) as error:
            what = f"{pod.namespace}/{pod.name}/{container.name}"
            raise RequestRejected(f"{what}: {error}") from None


def with_files(annotations: Annotations) -> ContainerAdjustment:
    """Return an adjustment with devices and mounts of all kinds."""
    adjustment = ContainerAdjustment()
    for device in annotations.read("devices", tuple[DeviceEntry, ...]) or ():
        adjustment = adjustment.set_device(
            Device(
                device.path,
                device.type,
                device.major,
                device.minor,
                file_mode=device.file_mode or None,
                uid=device.uid or None,
                gid=device.gid or None,
            )
        )
    for name in annotations.read("cdi-devices", tuple[str, ...]) or ():
        adjustment = adjustment.add_cdi_device(name)
    for mount in annotations.read("mounts", tuple[MountEntry, ...]) or ():
        adjustment = adjustment.set_mount(
            Mount(mount.destination, mount.type, mount.source, mount.options)
        )
    for link in annotations.read("network-devices", tuple[NetDeviceEntry, ...]) or ():
        adjustment = adjustment.set_net_device(link.host_if, link.name)
    return adjustment


def with_kernel_settings(
    adjustment: ContainerAdjustment, annotations: Annotations
) -> ContainerAdjustment:
    """Add scheduling, memory policy and sysctls."""
    if priority := annotations.read("io-priority", IoPriorityEntry):
        classes = names_of(IoPriorityClass, "IOPRIO_CLASS_")
        if (class_ := classes.get(priority.class_)) is None:
            found = shortened(priority.class_, SHOWN)
            log.warning("io-priority.unknown-class", found=found)
        else:
            adjustment = adjustment.set_io_priority(
                IoPriority(class_, priority.priority)
            )
    if scheduler := annotations.read("scheduling-policy", SchedulerEntry):
        flags = [named(SchedulerFlag, "SCHED_FLAG_", one) for one in scheduler.flags]
        adjustment = adjustment.set_scheduler(
            Scheduler(
                named(SchedulerPolicy, "SCHED_", scheduler.policy),
                nice=scheduler.nice,
                priority=scheduler.priority,
                flags=tuple(flags),
                runtime=scheduler.runtime,
                deadline=scheduler.deadline,
                period=scheduler.period,
            )
        )
    if sysctls := annotations.read("sysctl", dict[str, str | int]):
        adjustment = adjustment.set_sysctl({k: str(v) for k, v in sysctls.items()})
    if policy := annotations.read("memory-policy", MemoryPolicyEntry):
        mode = named(MemoryPolicyMode, "MPOL_", policy.mode)
        modes = [named(MemoryPolicyFlag, "MPOL_F_", one) for one in policy.flags]
        adjustment = adjustment.set_memory_policy(
            MemoryPolicy(mode, policy.nodes, tuple(modes))
        )
    return adjustment


def names_of(kind: type[EnumT], prefix: str) -> dict[str, EnumT]:
    """Return the members of an enumeration by the kernel's names."""
    return {prefix + member.name: member for member in kind}


def named(kind: type[EnumT], prefix: str, name: str) -> EnumT:
    """Return the member of an enumeration with the kernel's name.

    Raises:
        InputError: There is none.
    """
    names = names_of(kind, prefix)
    if name not in names:
        found = shortened(name, SHOWN)
        raise InputError(f"{found!r} is none of {', '.join(names)}")
    return names[name]


if __name__ == "__main__":
    serve(DeviceInjector(), index="10")
