"""Setters for the Linux part of an adjustment, beside its resources."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Self

import msgspec

from nri_resmgr.stub.model import (
    Device,
    IoPriority,
    LinuxContainerAdjustment,
    MemoryPolicy,
    Namespace,
    NetDevice,
    Rdt,
    Scheduler,
    Seccomp,
)
from nri_resmgr.stub.model.contents import texts
from nri_resmgr.stub.resource_setters import ResourceSetters
from nri_resmgr.stub.set_once import (
    mark,
    plain_key,
    with_entry,
    with_field,
    with_item,
    with_text,
)


class LinuxSetters(ResourceSetters, frozen=True):
    """Each method returns a new value; ``replace_`` takes over from earlier plugins.

    Raises:
        DuplicateKey: The field, or the key of it, is set or marked already.
        BadKey: A key is empty or begins with "-".
        EmptyText: Text that NRI would read as "unchanged".
    """

    # The class that is made of these setters, ContainerAdjustment, says where it has
    # its Linux part; nobody makes a LinuxSetters by itself.

    def _linux(self) -> LinuxContainerAdjustment:
        raise NotImplementedError

    def _with_linux(self, linux: LinuxContainerAdjustment) -> Self:
        raise NotImplementedError

    def set_device(self, device: Device) -> Self:
        """Add a device node; of the same path as an existing one, replace that."""
        plain_key("linux.devices", device.path)
        return self._add_device(device)

    def remove_device(self, path: str) -> Self:
        """Mark a device as removed: no runtime does it, earlier plugins let go."""
        return self._add_device(Device(mark("linux.devices", path)))

    def replace_device(self, device: Device) -> Self:
        """Set a device that an earlier plugin may have set."""
        return self.remove_device(device.path).set_device(device)

    def set_namespace(self, namespace: Namespace) -> Self:
        """Add a namespace, or replace the one of the same type."""
        plain_key("linux.namespaces", namespace.type)
        return self._add_namespace(namespace)

    def remove_namespace(self, kind: str) -> Self:
        """Share the host's namespace of that type; there is no taking over."""
        return self._add_namespace(Namespace(mark("linux.namespaces", kind)))

    def set_sysctl(self, key: str, value: str) -> Self:
        """Set a sysctl of the container's namespaces."""
        return self._add_sysctl(plain_key("linux.sysctl", key), value)

    def remove_sysctl(self, key: str) -> Self:
        """Remove a sysctl; runtimes up to NRI 0.12.2 lose a removal on its own."""
        return self._add_sysctl(mark("linux.sysctl", key), "")

    def replace_sysctl(self, key: str, value: str) -> Self:
        """Set a sysctl that an earlier plugin may have set."""
        return self.remove_sysctl(key).set_sysctl(key, value)

    def set_net_device(self, host_name: str, name: str = "") -> Self:
        """Move a network device of the host in, under *name* or its own."""
        return self._add_net_device(
            plain_key("linux.net_devices", host_name), NetDevice(name)
        )

    def remove_net_device(self, host_name: str) -> Self:
        """Leave a network device on the host that others wanted to move in."""
        return self._add_net_device(mark("linux.net_devices", host_name), NetDevice())

    def replace_net_device(self, host_name: str, name: str = "") -> Self:
        """Move in a network device that an earlier plugin may have moved."""
        return self.remove_net_device(host_name).set_net_device(host_name, name)

    def set_cgroups_path(self, path: str) -> Self:
        """Set the path of the container's cgroup."""
        linux = with_text(self._linux(), "cgroups_path", path, "linux.cgroups_path")
        return self._with_linux(linux)

    def set_oom_score_adj(self, adjustment: int) -> Self:
        """Set oom_score_adj, -1000 to 1000."""
        return self._set_linux("oom_score_adj", adjustment)

    def set_io_priority(self, priority: IoPriority) -> Self:
        """Set the I/O priority; class NONE takes it away."""
        return self._set_linux("io_priority", priority)

    def set_scheduler(self, scheduler: Scheduler) -> Self:
        """Set the scheduling policy and its parameters."""
        return self._set_linux("scheduler", scheduler)

    def set_seccomp_policy(self, policy: Seccomp) -> Self:
        """Set the whole seccomp filter."""
        return self._set_linux("seccomp_policy", policy)

    def set_memory_policy(self, policy: MemoryPolicy) -> Self:
        """Set the memory policy of set_mempolicy(2)."""
        return self._set_linux("memory_policy", policy)

    def set_rdt_clos_id(self, clos_id: str) -> Self:
        """Set the resctrl group."""
        return self._set_rdt("clos_id", clos_id)

    def set_rdt_schemata(self, schemata: Iterable[str]) -> Self:
        """Set the lines of the group's schemata file."""
        return self._set_rdt("schemata", texts(schemata))

    def set_rdt_monitoring(self, *, enable: bool = True) -> Self:
        """Set whether the container gets a monitoring group of its own."""
        return self._set_rdt("enable_monitoring", enable)

    def remove_rdt(self) -> Self:
        """Drop what earlier plugins set of resctrl; settings of this reply stand."""
        return self._set_rdt("remove", content=True)

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
