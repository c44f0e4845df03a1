"""Setters for Linux resources, the same in adjustments and updates."""

from __future__ import annotations

from operator import attrgetter
from typing import Self

import msgspec

from nri_resmgr.stub.model import (
    DeviceCgroupRule,
    HugepageLimit,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pids,
)
from nri_resmgr.stub.reply_errors import EmptyCpuset
from nri_resmgr.stub.set_once import plain_key, with_entry, with_field, with_item


class ResourceSetters(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Each method returns a new value, and refuses what is already set.

    Raises:
        DuplicateKey: The field, or the key of it, is set.
        EmptyCpuset: ``set_cpus`` or ``set_mems`` without any CPU or node.
        BadKey: A key is empty or begins with "-".
    """

    # Adjustments and updates hold their resources in different places, and say where.

    def _resources(self) -> LinuxResources:
        raise NotImplementedError

    def _with_resources(self, resources: LinuxResources) -> Self:
        raise NotImplementedError

    def set_cpus(self, cpus: str) -> Self:
        """Set cpuset.cpus, in the kernel's list format."""
        if not cpus:
            raise EmptyCpuset("cpus")
        return self._set_cpu("cpus", cpus)

    def set_mems(self, mems: str) -> Self:
        """Set cpuset.mems, in the kernel's list format."""
        if not mems:
            raise EmptyCpuset("mems")
        return self._set_cpu("mems", mems)

    def set_cpu_shares(self, shares: int) -> Self:
        """Set the relative CPU weight; 1024 is one CPU's worth."""
        return self._set_cpu("shares", shares)

    def set_cpu_quota(self, quota: int) -> Self:
        """Set the CPU time per period in microseconds; -1 is unlimited."""
        return self._set_cpu("quota", quota)

    def set_cpu_period(self, period: int) -> Self:
        """Set the period of the quota in microseconds."""
        return self._set_cpu("period", period)

    def set_cpu_realtime_runtime(self, runtime: int) -> Self:
        """Set the realtime CPU time per period in microseconds."""
        return self._set_cpu("realtime_runtime", runtime)

    def set_cpu_realtime_period(self, period: int) -> Self:
        """Set the period of the realtime runtime in microseconds."""
        return self._set_cpu("realtime_period", period)

    def set_memory_limit(self, limit: int) -> Self:
        """Set the memory limit in bytes; runtimes set swap to the same."""
        return self._set_memory("limit", limit)

    def set_memory_reservation(self, reservation: int) -> Self:
        """Set the soft memory limit in bytes."""
        return self._set_memory("reservation", reservation)

    def set_memory_swap(self, swap: int) -> Self:
        """Set the limit of memory and swap together in bytes."""
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
        """Set whether the kernel spares the container; cgroup v1 only."""
        return self._set_memory("disable_oom_killer", disable)

    def set_memory_use_hierarchy(self, *, use: bool = True) -> Self:
        """Set whether memory is accounted hierarchically; cgroup v1 only."""
        return self._set_memory("use_hierarchy", use)

    def set_hugepage_limit(self, page_size: str, limit: int) -> Self:
        """Set the limit in bytes of pages of one size, spelt as in "2MB"."""
        label = "linux.resources.hugepage_limits"
        item = HugepageLimit(plain_key(label, page_size), limit)
        return self._with_resources(
            with_item(
                self._resources(),
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
        """Set a cgroup v2 file by its name, as in "memory.high"."""
        label = "linux.resources.unified"
        entry = (plain_key(label, key), value)
        return self._with_resources(
            with_entry(self._resources(), "unified", entry, label)
        )

    def add_device_rule(self, rule: DeviceCgroupRule) -> Self:
        """Append a device cgroup rule; rules accumulate and never conflict."""
        resources = self._resources()
        return self._with_resources(
            msgspec.structs.replace(resources, devices=(*resources.devices, rule))
        )

    def set_pids_limit(self, limit: int) -> Self:
        """Set the most tasks there may be; -1 is unlimited."""
        return self._set("pids", Pids(limit))

    def _set(self, name: str, content: object) -> Self:
        label = f"linux.resources.{name}"
        return self._with_resources(with_field(self._resources(), name, content, label))

    def _set_cpu(self, name: str, content: object) -> Self:
        resources = self._resources()
        label = f"linux.resources.cpu.{name}"
        cpu = with_field(resources.cpu or LinuxCpu(), name, content, label)
        return self._with_resources(msgspec.structs.replace(resources, cpu=cpu))

    def _set_memory(self, name: str, content: object) -> Self:
        resources = self._resources()
        label = f"linux.resources.memory.{name}"
        memory = with_field(resources.memory or LinuxMemory(), name, content, label)
        return self._with_resources(msgspec.structs.replace(resources, memory=memory))
