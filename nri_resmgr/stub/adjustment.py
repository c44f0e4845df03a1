"""The adjustment of a container being created."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, Self

import msgspec

from nri_resmgr.stub.errors import EmptyText, InvalidKey
from nri_resmgr.stub.model import (
    CdiDevice,
    Device,
    Hooks,
    IoPriority,
    KeyValue,
    LinuxContainerAdjustment,
    LinuxResources,
    MemoryPolicy,
    Mount,
    Namespace,
    NetDevice,
    Rdt,
    Rlimit,
    Scheduler,
    Seccomp,
)
from nri_resmgr.stub.model.contents import EMPTY, texts
from nri_resmgr.stub.setters import (
    ResourceSetters,
    plain_key,
    removal_of,
    with_entry,
    with_field,
    with_item,
    with_text,
)

_HOOK_KINDS: Final = Hooks.__struct_fields__


class ContainerAdjustment(ResourceSetters, frozen=True):
    """Changes to a container being created; each method returns a new adjustment.

    A field, or a key of one, may be set by one plugin only, otherwise creation fails.
    ``set_`` methods set it. ``remove_`` methods mark it as removed, which also discards
    what an earlier plugin set. ``replace_`` methods do both. Labels cannot be adjusted.

    Raises:
        DuplicateKey: A method sets or marks what this adjustment already has.
        InvalidKey: A key is empty or begins with "-".
        EmptyText: Text that NRI would read as "unchanged".

    >>> ContainerAdjustment().set_env("A", "1").set_cpus("0-3").env
    (KeyValue(key='A', value='1'),)
    """

    annotations: Mapping[str, str] = EMPTY
    mounts: tuple[Mount, ...] = ()
    env: tuple[KeyValue, ...] = ()
    hooks: Hooks | None = None
    linux: LinuxContainerAdjustment | None = None
    rlimits: tuple[Rlimit, ...] = ()
    cdi_devices: tuple[CdiDevice, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources to set; all absent if none are."""
        return self._linux().resources or LinuxResources()

    def set_annotation(self, key: str, value: str) -> Self:
        """Set an annotation of the OCI spec."""
        return self._add_annotation(plain_key("annotations", key), value)

    def remove_annotation(self, key: str) -> Self:
        """Remove an annotation."""
        return self._add_annotation(removal_of("annotations", key), "")

    def replace_annotation(self, key: str, value: str) -> Self:
        """Set an annotation, also if an earlier plugin has set it."""
        return self.remove_annotation(key).set_annotation(key, value)

    def set_env(self, name: str, value: str) -> Self:
        """Set an environment variable.

        Runtimes cannot remove a variable of the container; set it to "" instead.
        """
        return self._add_env(plain_key("env", name), value)

    def remove_env(self, name: str) -> Self:
        """Discard a variable that an earlier plugin set.

        No runtime removes the container's own variables.
        """
        return self._add_env(removal_of("env", name), "")

    def replace_env(self, name: str, value: str) -> Self:
        """Set a variable, also if an earlier plugin has set it."""
        return self.remove_env(name).set_env(name, value)

    def set_mount(self, mount: Mount) -> Self:
        """Add a mount, or replace the one with the same destination."""
        plain_key("mounts", mount.destination)
        return self._add_mount(mount)

    def remove_mount(self, destination: str) -> Self:
        """Remove a mount; runtimes before NRI 0.7 ignore that."""
        return self._add_mount(Mount(removal_of("mounts", destination)))

    def replace_mount(self, mount: Mount) -> Self:
        """Set a mount, also if an earlier plugin has set it."""
        return self.remove_mount(mount.destination).set_mount(mount)

    def set_args(self, args: Iterable[str]) -> Self:
        """Set the whole command line, which must not be empty.

        Raises:
            EmptyText: There are no arguments.
            InvalidKey: The first argument is empty.
        """
        return self._set_args(_command_line(args))

    def replace_args(self, args: Iterable[str]) -> Self:
        """Set the command line, also if an earlier plugin has set it."""
        # An empty first element is the removal mark; the runtime cuts it off.
        return self._set_args(("", *_command_line(args)))

    def add_hooks(self, hooks: Hooks) -> Self:
        """Append OCI hooks; hooks of all plugins are run and never conflict."""
        present = self.hooks or Hooks()
        kinds = {
            kind: (*getattr(present, kind), *getattr(hooks, kind))
            for kind in _HOOK_KINDS
        }
        return msgspec.structs.replace(self, hooks=Hooks(**kinds))

    def set_rlimit(self, rlimit: Rlimit) -> Self:
        """Add a POSIX resource limit; an existing one of the same type stays, too."""
        plain_key("rlimits", rlimit.type)
        return with_item(self, "rlimits", rlimit, attrgetter("type"), "rlimits")

    def add_cdi_device(self, name: str) -> Self:
        """Inject a device by its CDI name."""
        device = CdiDevice(plain_key("cdi_devices", name))
        key = attrgetter("name")
        return with_item(self, "cdi_devices", device, key, "cdi_devices")

    def set_device(self, device: Device) -> Self:
        """Add a device node, or replace the one with the same path."""
        plain_key("linux.devices", device.path)
        return self._add_device(device)

    def remove_device(self, path: str) -> Self:
        """Discard a device that an earlier plugin set.

        No runtime removes the container's own devices.
        """
        return self._add_device(Device(removal_of("linux.devices", path)))

    def replace_device(self, device: Device) -> Self:
        """Set a device, also if an earlier plugin has set it."""
        return self.remove_device(device.path).set_device(device)

    def set_namespace(self, namespace: Namespace) -> Self:
        """Add a namespace, or replace the one of the same type."""
        plain_key("linux.namespaces", namespace.type)
        return self._add_namespace(namespace)

    def remove_namespace(self, kind: str) -> Self:
        """Share the host's namespace of that type.

        Unlike other removals this does not discard what an earlier plugin set.
        """
        return self._add_namespace(Namespace(removal_of("linux.namespaces", kind)))

    def set_sysctl(self, key: str, value: str) -> Self:
        """Set a sysctl of the container's namespaces."""
        return self._add_sysctl(plain_key("linux.sysctl", key), value)

    def remove_sysctl(self, key: str) -> Self:
        """Remove a sysctl; up to NRI 0.12.2 runtimes ignore it without a new value."""
        return self._add_sysctl(removal_of("linux.sysctl", key), "")

    def replace_sysctl(self, key: str, value: str) -> Self:
        """Set a sysctl, also if an earlier plugin has set it."""
        return self.remove_sysctl(key).set_sysctl(key, value)

    def set_net_device(self, host_name: str, name: str = "") -> Self:
        """Move a network device of the host in, named *name* or as on the host."""
        return self._add_net_device(
            plain_key("linux.net_devices", host_name), NetDevice(name)
        )

    def remove_net_device(self, host_name: str) -> Self:
        """Leave a network device on the host that an earlier plugin moves in."""
        key = removal_of("linux.net_devices", host_name)
        return self._add_net_device(key, NetDevice())

    def replace_net_device(self, host_name: str, name: str = "") -> Self:
        """Move in a network device, also if an earlier plugin does so."""
        return self.remove_net_device(host_name).set_net_device(host_name, name)

    def set_cgroups_path(self, path: str) -> Self:
        """Set the path of the container's cgroup.

        Raises:
            EmptyText: *path* is empty.
        """
        linux = with_text(self._linux(), "cgroups_path", path, "linux.cgroups_path")
        return self._with_linux(linux)

    def set_oom_score_adj(self, adjustment: int) -> Self:
        """Set oom_score_adj, -1000 to 1000."""
        return self._set_linux("oom_score_adj", adjustment)

    def set_io_priority(self, priority: IoPriority) -> Self:
        """Set the I/O priority; class NONE removes it."""
        return self._set_linux("io_priority", priority)

    def set_scheduler(self, scheduler: Scheduler) -> Self:
        """Set the scheduling policy and its parameters."""
        return self._set_linux("scheduler", scheduler)

    def set_seccomp_policy(self, policy: Seccomp) -> Self:
        """Set the whole seccomp filter."""
        return self._set_linux("seccomp_policy", policy)

    def set_memory_policy(self, policy: MemoryPolicy) -> Self:
        """Set the memory policy, as in set_mempolicy(2)."""
        return self._set_linux("memory_policy", policy)

    def set_rdt_clos_id(self, clos_id: str) -> Self:
        """Set the resctrl group by its name."""
        return self._set_rdt("clos_id", clos_id)

    def set_rdt_schemata(self, schemata: Iterable[str]) -> Self:
        """Set the lines of the group's schemata file."""
        return self._set_rdt("schemata", texts(schemata))

    def set_rdt_monitoring(self, *, enable: bool = True) -> Self:
        """Set whether the container gets its own monitoring group."""
        return self._set_rdt("enable_monitoring", enable)

    def remove_rdt(self) -> Self:
        """Discard the resctrl settings of earlier plugins; those of this reply stay."""
        return self._set_rdt("remove", content=True)

    def _add_annotation(self, key: str, value: str) -> Self:
        return with_entry(self, "annotations", (key, value), "annotations")

    def _add_env(self, key: str, value: str) -> Self:
        return with_item(self, "env", KeyValue(key, value), attrgetter("key"), "env")

    def _add_mount(self, mount: Mount) -> Self:
        key = attrgetter("destination")
        return with_item(self, "mounts", mount, key, "mounts")

    def _set_args(self, args: tuple[str, ...]) -> Self:
        return with_field(self, "args", args, "args")

    def _set_linux(self, name: str, content: object) -> Self:
        linux = with_field(self._linux(), name, content, f"linux.{name}")
        return self._with_linux(linux)

    def _set_rdt(self, name: str, content: object) -> Self:
        linux = self._linux()
        rdt = with_field(linux.rdt or Rdt(), name, content, f"linux.rdt.{name}")
        return self._with_linux(msgspec.structs.replace(linux, rdt=rdt))

    def _add_device(self, device: Device) -> Self:
        key, label = attrgetter("path"), "linux.devices"
        return self._with_linux(with_item(self._linux(), "devices", device, key, label))

    def _add_namespace(self, namespace: Namespace) -> Self:
        key, label = attrgetter("type"), "linux.namespaces"
        return self._with_linux(
            with_item(self._linux(), "namespaces", namespace, key, label)
        )

    def _add_sysctl(self, key: str, value: str) -> Self:
        linux = with_entry(self._linux(), "sysctl", (key, value), "linux.sysctl")
        return self._with_linux(linux)

    def _add_net_device(self, key: str, device: NetDevice) -> Self:
        entry, label = (key, device), "linux.net_devices"
        return self._with_linux(with_entry(self._linux(), "net_devices", entry, label))

    def _linux(self) -> LinuxContainerAdjustment:
        return self.linux or LinuxContainerAdjustment()

    def _with_linux(self, linux: LinuxContainerAdjustment) -> Self:
        return msgspec.structs.replace(self, linux=linux)

    def _with_resources(self, resources: LinuxResources) -> Self:
        return self._with_linux(
            msgspec.structs.replace(self._linux(), resources=resources)
        )


def _command_line(args: Iterable[str]) -> tuple[str, ...]:
    words = texts(args)
    if not words:
        raise EmptyText("args")
    if not words[0]:
        raise InvalidKey("args", words[0])
    return words
