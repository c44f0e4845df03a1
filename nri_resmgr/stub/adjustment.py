"""The adjustment of a container being created."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Self, overload

from nri_resmgr.stub.contents import EMPTY, texts
from nri_resmgr.stub.discarded import has_builders
from nri_resmgr.stub.errors import EmptyText, InvalidKey
from nri_resmgr.stub.model import (
    CdiDevice,
    Device,
    Hooks,
    IoPriority,
    KeyValue,
    LinuxContainerAdjustment,
    MemoryPolicy,
    Mount,
    Namespace,
    NetDevice,
    Rdt,
    Rlimit,
    Scheduler,
    Seccomp,
)
from nri_resmgr.stub.setters import (
    REMOVED,
    RESOURCE_PARTS,
    ResourceSetters,
    check_type,
)

_HOOK_KINDS: Final = Hooks.__struct_fields__

has_builders(__name__)


class ContainerAdjustment(ResourceSetters, frozen=True):
    """Changes to a container being created; each method returns a new adjustment.

    Adjustments are immutable: ``adjustment = adjustment.set_env("A", "1")``. A result
    that is thrown away is a `DiscardedResult`, a warning with the line of it. Where a
    method takes a key and its value, it takes a mapping, too.

    A field, or a key of one, may be set by one plugin only, otherwise creation fails.
    ``set_`` methods set it. ``remove_`` methods mark it as removed, which also discards
    what an earlier plugin set. ``replace_`` methods do both. Labels cannot be adjusted.

    Raises:
        BadField: An argument has another type than its field.
        DuplicateKey: A method sets or marks what this adjustment already has.
        InvalidKey: A key is empty or begins with "-".
        EmptyText: Text that NRI would read as "unchanged".

    >>> ContainerAdjustment().set_env({"A": "1"}).set_cpus("0-3").env
    (KeyValue(key='A', value='1'),)
    """

    _parts: ClassVar = {
        **RESOURCE_PARTS,
        "linux": LinuxContainerAdjustment,
        "rdt": Rdt,
    }

    annotations: Mapping[str, str] = EMPTY
    mounts: tuple[Mount, ...] = ()
    env: tuple[KeyValue, ...] = ()
    hooks: Hooks | None = None
    linux: LinuxContainerAdjustment | None = None
    rlimits: tuple[Rlimit, ...] = ()
    cdi_devices: tuple[CdiDevice, ...] = ()
    args: tuple[str, ...] = ()

    @overload
    def set_annotation(self, key: Mapping[str, str], /) -> Self: ...
    @overload
    def set_annotation(self, key: str, value: str) -> Self: ...
    def set_annotation(
        self, key: str | Mapping[str, str], value: str | None = None
    ) -> Self:
        """Set an annotation of the OCI spec, or several."""
        if value is None or not isinstance(key, str):
            return self._each("set_annotation", key, value)
        return self._put_text("annotations", key, value)

    def remove_annotation(self, key: str) -> Self:
        """Remove an annotation."""
        return self._put("annotations", key, "", REMOVED)

    @overload
    def replace_annotation(self, key: Mapping[str, str], /) -> Self: ...
    @overload
    def replace_annotation(self, key: str, value: str) -> Self: ...
    def replace_annotation(
        self, key: str | Mapping[str, str], value: str | None = None
    ) -> Self:
        """Set annotations, also if an earlier plugin has set them."""
        if value is None or not isinstance(key, str):
            return self._each("replace_annotation", key, value)
        return self.remove_annotation(key).set_annotation(key, value)

    @overload
    def set_env(self, name: Mapping[str, str], /) -> Self: ...
    @overload
    def set_env(self, name: str, value: str) -> Self: ...
    def set_env(self, name: str | Mapping[str, str], value: str | None = None) -> Self:
        """Set an environment variable, or several.

        Runtimes cannot remove a variable of the container; set it to "" instead.
        """
        if value is None or not isinstance(name, str):
            return self._each("set_env", name, value)
        check_type("env", value, str)
        return self._add("env", KeyValue(name, value))

    def remove_env(self, name: str) -> Self:
        """Discard a variable that an earlier plugin set.

        No runtime removes the container's own variables.
        """
        return self._add("env", KeyValue(name), REMOVED)

    @overload
    def replace_env(self, name: Mapping[str, str], /) -> Self: ...
    @overload
    def replace_env(self, name: str, value: str) -> Self: ...
    def replace_env(
        self, name: str | Mapping[str, str], value: str | None = None
    ) -> Self:
        """Set variables, also if an earlier plugin has set them."""
        if value is None or not isinstance(name, str):
            return self._each("replace_env", name, value)
        return self.remove_env(name).set_env(name, value)

    def set_mount(self, mount: Mount) -> Self:
        """Add a mount, or replace the one with the same destination."""
        return self._add("mounts", mount)

    def remove_mount(self, destination: str) -> Self:
        """Remove a mount; runtimes before NRI 0.7 ignore that."""
        return self._add("mounts", Mount(destination), REMOVED)

    def replace_mount(self, mount: Mount) -> Self:
        """Set a mount, also if an earlier plugin has set it."""
        check_type("mounts", mount, Mount)
        return self.remove_mount(mount.destination).set_mount(mount)

    def set_args(self, args: Iterable[str]) -> Self:
        """Set the whole command line, which must not be empty.

        Raises:
            EmptyText: There are no arguments.
            InvalidKey: The first argument is empty.
        """
        return self._set("args", _command_line(args), tuple)

    def replace_args(self, args: Iterable[str]) -> Self:
        """Set the command line, also if an earlier plugin has set it."""
        # An empty first element is the removal mark; the runtime cuts it off.
        return self._set("args", ("", *_command_line(args)), tuple)

    def add_hooks(self, hooks: Hooks) -> Self:
        """Append OCI hooks; hooks of all plugins are run and never conflict."""
        check_type("hooks", hooks, Hooks)
        present = self.hooks or Hooks()
        kinds = {
            kind: (*getattr(present, kind), *getattr(hooks, kind))
            for kind in _HOOK_KINDS
        }
        return self._with("hooks", Hooks(**kinds))

    def set_rlimit(self, rlimit: Rlimit) -> Self:
        """Add a POSIX resource limit; an existing one of the same type stays, too."""
        return self._add("rlimits", rlimit)

    def add_cdi_device(self, name: str) -> Self:
        """Inject a device by its CDI name."""
        return self._add("cdi_devices", CdiDevice(name))

    def set_device(self, device: Device) -> Self:
        """Add a device node, or replace the one with the same path."""
        return self._add("linux.devices", device)

    def remove_device(self, path: str) -> Self:
        """Discard a device that an earlier plugin set.

        No runtime removes the container's own devices.
        """
        return self._add("linux.devices", Device(path), REMOVED)

    def replace_device(self, device: Device) -> Self:
        """Set a device, also if an earlier plugin has set it."""
        check_type("linux.devices", device, Device)
        return self.remove_device(device.path).set_device(device)

    def set_namespace(self, namespace: Namespace) -> Self:
        """Add a namespace, or replace the one of the same type."""
        return self._add("linux.namespaces", namespace)

    def remove_namespace(self, kind: str) -> Self:
        """Share the host's namespace of that type.

        Unlike other removals this does not discard what an earlier plugin set.
        """
        return self._add("linux.namespaces", Namespace(kind), REMOVED)

    @overload
    def set_sysctl(self, key: Mapping[str, str], /) -> Self: ...
    @overload
    def set_sysctl(self, key: str, value: str) -> Self: ...
    def set_sysctl(
        self, key: str | Mapping[str, str], value: str | None = None
    ) -> Self:
        """Set a sysctl of the container's namespaces, or several."""
        if value is None or not isinstance(key, str):
            return self._each("set_sysctl", key, value)
        return self._put_text("linux.sysctl", key, value)

    def remove_sysctl(self, key: str) -> Self:
        """Remove a sysctl; up to NRI 0.12.2 runtimes ignore it without a new value."""
        return self._put("linux.sysctl", key, "", REMOVED)

    @overload
    def replace_sysctl(self, key: Mapping[str, str], /) -> Self: ...
    @overload
    def replace_sysctl(self, key: str, value: str) -> Self: ...
    def replace_sysctl(
        self, key: str | Mapping[str, str], value: str | None = None
    ) -> Self:
        """Set sysctls, also if an earlier plugin has set them."""
        if value is None or not isinstance(key, str):
            return self._each("replace_sysctl", key, value)
        return self.remove_sysctl(key).set_sysctl(key, value)

    def set_net_device(self, host_name: str, name: str = "") -> Self:
        """Move a network device of the host in, named *name* or as on the host."""
        check_type("linux.net_devices", name, str)
        return self._put("linux.net_devices", host_name, NetDevice(name))

    def remove_net_device(self, host_name: str) -> Self:
        """Leave a network device on the host that an earlier plugin moves in."""
        return self._put("linux.net_devices", host_name, NetDevice(), REMOVED)

    def replace_net_device(self, host_name: str, name: str = "") -> Self:
        """Move in a network device, also if an earlier plugin does so."""
        return self.remove_net_device(host_name).set_net_device(host_name, name)

    def set_cgroups_path(self, path: str) -> Self:
        """Set the path of the container's cgroup.

        Raises:
            EmptyText: *path* is empty.
        """
        return self._set_text("linux.cgroups_path", path)

    def set_oom_score_adj(self, adjustment: int) -> Self:
        """Set oom_score_adj, -1000 to 1000."""
        return self._set("linux.oom_score_adj", adjustment, int)

    def set_io_priority(self, priority: IoPriority) -> Self:
        """Set the I/O priority; class NONE removes it."""
        return self._set("linux.io_priority", priority, IoPriority)

    def set_scheduler(self, scheduler: Scheduler) -> Self:
        """Set the scheduling policy and its parameters."""
        return self._set("linux.scheduler", scheduler, Scheduler)

    def set_seccomp_policy(self, policy: Seccomp) -> Self:
        """Set the whole seccomp filter."""
        return self._set("linux.seccomp_policy", policy, Seccomp)

    def set_memory_policy(self, policy: MemoryPolicy) -> Self:
        """Set the memory policy, as in set_mempolicy(2)."""
        return self._set("linux.memory_policy", policy, MemoryPolicy)

    def set_rdt_clos_id(self, clos_id: str) -> Self:
        """Set the resctrl group by its name."""
        return self._set("linux.rdt.clos_id", clos_id, str)

    def set_rdt_schemata(self, schemata: Iterable[str]) -> Self:
        """Set the lines of the group's schemata file."""
        return self._set("linux.rdt.schemata", texts(schemata), tuple)

    def set_rdt_monitoring(self, *, enable: bool = True) -> Self:
        """Set whether the container gets its own monitoring group."""
        return self._set("linux.rdt.enable_monitoring", enable, bool)

    def remove_rdt(self) -> Self:
        """Discard the resctrl settings of earlier plugins; those of this reply stay."""
        return self._set("linux.rdt.remove", True, bool)


def _command_line(args: Iterable[str]) -> tuple[str, ...]:
    words = texts(args)
    if not words:
        raise EmptyText("args")
    for word in words:
        check_type("args", word, str)
    if not words[0]:
        raise InvalidKey("args", words[0])
    return words
