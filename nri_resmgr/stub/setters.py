"""Setters for Linux resources, and for any field or key that may be set only once.

A runtime fails a creation in which a field is set twice, also by one plugin. The
setters therefore raise where the mistake is made, in the plugin's code.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from nri_proto import NriLevel
from nri_resmgr.stub.errors import DuplicateKey, EmptyCpuset, EmptyText, InvalidKey
from nri_resmgr.stub.fields import level_of
from nri_resmgr.stub.model import (
    DeviceCgroupRule,
    HugepageLimit,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pids,
)
from nri_resmgr.stub.model.contents import defaults_of

if TYPE_CHECKING:
    from collections.abc import Callable

ValueT = TypeVar("ValueT", bound=msgspec.Struct)
ItemT = TypeVar("ItemT")


def with_field(value: ValueT, name: str, content: object, label: str) -> ValueT:
    """Return *value* with *content* in field *name*.

    Args:
        value: The value to copy.
        name: A field that still has its default.
        content: The new content.
        label: Path of the field, for the error.

    Raises:
        DuplicateKey: The field is set.
    """
    if getattr(value, name) != defaults_of(type(value))[name]:
        raise DuplicateKey(label)
    return msgspec.structs.replace(value, **{name: content})


def with_text(value: ValueT, name: str, text: str, label: str) -> ValueT:
    """Return *value* with *text* in a field in which "" means "unchanged".

    Raises:
        EmptyText: *text* is empty.
        DuplicateKey: The field is set.
    """
    if not text:
        raise EmptyText(label)
    return with_field(value, name, text, label)


def with_entry(
    value: ValueT, name: str, entry: tuple[str, object], label: str
) -> ValueT:
    """Return *value* with one more key and its content in a map field.

    Raises:
        DuplicateKey: The field has the key.
    """
    key, content = entry
    entries = getattr(value, name)
    if key in entries:
        raise DuplicateKey(label, key)
    return msgspec.structs.replace(value, **{name: {**entries, key: content}})


def with_item(
    value: ValueT,
    name: str,
    item: ItemT,
    key_of: Callable[[ItemT], str],
    label: str,
) -> ValueT:
    """Return *value* with one more item in a repeated field.

    Raises:
        DuplicateKey: The field has an item with that key.
    """
    items: tuple[Any, ...] = getattr(value, name)
    if key_of(item) in map(key_of, items):
        raise DuplicateKey(label, key_of(item))
    return msgspec.structs.replace(value, **{name: (*items, item)})


def plain_key(label: str, key: str) -> str:
    """Check that *key* can be set, and return it.

    Raises:
        InvalidKey: It is empty, or the runtime would read it as a removal mark.
    """
    if not key or key.startswith("-"):
        raise InvalidKey(label, key)
    return key


def removal_of(label: str, key: str) -> str:
    """Return the key that marks *key* as removed.

    Raises:
        InvalidKey: As in `plain_key`.
    """
    return f"-{plain_key(label, key)}"


class ResourceSetters(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Setters of Linux resources; each returns a new value.

    Raises:
        DuplicateKey: The field, or the key of it, is already set.
        EmptyCpuset: ``set_cpus`` or ``set_mems`` without any CPU or node.
        InvalidKey: A key is empty or begins with "-".
    """

    # Adjustments and updates keep their resources in different places.

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources to set; all absent if none are."""
        raise NotImplementedError

    def _with_resources(self, resources: LinuxResources) -> Self:
        raise NotImplementedError

    @property
    def needs_level(self) -> NriLevel:
        """The lowest NRI level whose runtimes read all fields that are set."""
        return level_of(self)

    def set_cpus(self, cpus: str) -> Self:
        """Set cpuset.cpus in the kernel's list format, such as ``0-3,8``."""
        if not cpus:
            raise EmptyCpuset("cpus")
        return self._set_cpu("cpus", cpus)

    def set_mems(self, mems: str) -> Self:
        """Set cpuset.mems in the kernel's list format, such as ``0-1``."""
        if not mems:
            raise EmptyCpuset("mems")
        return self._set_cpu("mems", mems)

    def set_cpu_shares(self, shares: int) -> Self:
        """Set the relative CPU weight; 1024 stands for one CPU."""
        return self._set_cpu("shares", shares)

    def set_cpu_quota(self, quota: int) -> Self:
        """Set the CPU time per period, in microseconds; -1 is unlimited."""
        return self._set_cpu("quota", quota)

    def set_cpu_period(self, period: int) -> Self:
        """Set the period of the CPU quota, in microseconds."""
        return self._set_cpu("period", period)

    def set_cpu_realtime_runtime(self, runtime: int) -> Self:
        """Set the realtime CPU time per period, in microseconds."""
        return self._set_cpu("realtime_runtime", runtime)

    def set_cpu_realtime_period(self, period: int) -> Self:
        """Set the period of the realtime CPU time, in microseconds."""
        return self._set_cpu("realtime_period", period)

    def set_memory_limit(self, limit: int) -> Self:
        """Set the memory limit in bytes; runtimes set the swap limit to the same."""
        return self._set_memory("limit", limit)

    def set_memory_reservation(self, reservation: int) -> Self:
        """Set the soft memory limit in bytes."""
        return self._set_memory("reservation", reservation)

    def set_memory_swap(self, swap: int) -> Self:
        """Set the limit of memory and swap together, in bytes."""
        return self._set_memory("swap", swap)

    def set_memory_kernel(self, kernel: int) -> Self:
        """Set the kernel memory limit in bytes; cgroup v1 only."""
        return self._set_memory("kernel", kernel)

    def set_memory_kernel_tcp(self, kernel_tcp: int) -> Self:
        """Set the TCP buffer limit in bytes; cgroup v1 only."""
        return self._set_memory("kernel_tcp", kernel_tcp)

    def set_memory_swappiness(self, swappiness: int) -> Self:
        """Set the swappiness, 0 to 100; cgroup v1 only."""
        return self._set_memory("swappiness", swappiness)

    def set_memory_disable_oom_killer(self, *, disable: bool = True) -> Self:
        """Set whether the OOM killer is disabled; cgroup v1 only."""
        return self._set_memory("disable_oom_killer", disable)

    def set_memory_use_hierarchy(self, *, use: bool = True) -> Self:
        """Set whether memory is accounted hierarchically; cgroup v1 only."""
        return self._set_memory("use_hierarchy", use)

    def set_hugepage_limit(self, page_size: str, limit: int) -> Self:
        """Set the limit in bytes for huge pages of one size, such as "2MB"."""
        label = "linux.resources.hugepage_limits"
        item = HugepageLimit(plain_key(label, page_size), limit)
        return self._with_resources(
            with_item(
                self.resources,
                "hugepage_limits",
                item,
                attrgetter("page_size"),
                label,
            )
        )

    def set_blockio_class(self, name: str) -> Self:
        """Set the block I/O class, which must exist; "" clears it."""
        return self._set("blockio_class", name)

    def set_rdt_class(self, name: str) -> Self:
        """Set the RDT class, which must exist; "" clears it."""
        return self._set("rdt_class", name)

    def set_unified(self, key: str, value: str) -> Self:
        """Set a cgroup v2 file by its name, such as "memory.high"."""
        label = "linux.resources.unified"
        entry = (plain_key(label, key), value)
        return self._with_resources(with_entry(self.resources, "unified", entry, label))

    def add_device_rule(self, rule: DeviceCgroupRule) -> Self:
        """Append a device cgroup rule; rules accumulate and never conflict."""
        resources = self.resources
        return self._with_resources(
            msgspec.structs.replace(resources, devices=(*resources.devices, rule))
        )

    def set_pids_limit(self, limit: int) -> Self:
        """Set the maximum number of tasks; -1 is unlimited."""
        return self._set("pids", Pids(limit))

    def _set(self, name: str, content: object) -> Self:
        label = f"linux.resources.{name}"
        return self._with_resources(with_field(self.resources, name, content, label))

    def _set_cpu(self, name: str, content: object) -> Self:
        resources = self.resources
        label = f"linux.resources.cpu.{name}"
        cpu = with_field(resources.cpu or LinuxCpu(), name, content, label)
        return self._with_resources(msgspec.structs.replace(resources, cpu=cpu))

    def _set_memory(self, name: str, content: object) -> Self:
        resources = self.resources
        label = f"linux.resources.memory.{name}"
        memory = with_field(resources.memory or LinuxMemory(), name, content, label)
        return self._with_resources(msgspec.structs.replace(resources, memory=memory))
