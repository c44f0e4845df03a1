"""Injects devices, mounts and the like into containers by annotations of their pods."""

from __future__ import annotations

import argparse
import enum
from typing import Annotated, Final, Literal, TypeVar

import msgspec
import structlog

from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.log.output import configure_logging
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
        self._all = pod.annotations
        self._scopes = (f"/container.{container.name}", "/pod", "")

    def read(self, subject: str, kind: type[T]) -> T | None:
        """Return what the pod has for a subject; None for nothing or an empty text.

        Raises:
            RequestRejected: It is not YAML, or has another form.
        """
        domains = DOMAINS[:1] if subject == WITHOUT_OLD_KEY else DOMAINS
        keys = [f"{subject}.{d}{scope}" for scope in self._scopes for d in domains]
        keys = [key for key in keys if key in self._all]
        if not keys:
            return None
        try:
            document = parse_yaml(self._all[keys[0]], references=False)
            return None if document is None else msgspec.convert(document, kind)
        except (InputError, msgspec.ValidationError) as error:
            raise RequestRejected(f"annotation {keys[0]}: {error}") from None


class DeviceInjector(CreateContainerHandler):
    """The plugin."""

    def create_container(self, pod: Pod, container: Container) -> ContainerAdjustment:
        """Return all that the pod wants to have injected into the container."""
        annotations = Annotations(pod, container)
        try:
            return with_kernel_settings(with_files(annotations), annotations)
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


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("device-injector", description=__doc__)
    parser.add_argument("--name", help="name to register with")
    parser.add_argument("--index", help="two digits, the order among plugins")
    parser.add_argument("--socket", metavar="PATH", help="socket of the runtime")
    options = parser.parse_args()
    configure_logging()
    plugin = DeviceInjector()
    serve(plugin, name=options.name, index=options.index, socket=options.socket)


if __name__ == "__main__":
    main()
