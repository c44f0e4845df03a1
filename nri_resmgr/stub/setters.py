"""Setters for Linux resources, and for any field or key that may be set only once.

A runtime fails a creation in which a field is set twice, also by one plugin. The
setters therefore raise where the mistake is made, in the plugin's code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Self, TypeVar, overload

from msgspec import Struct
from msgspec.structs import replace

from nri_proto import NriLevel
from nri_resmgr.stub.discarded import has_builders, warn_if_discarded
from nri_resmgr.stub.errors import BadField, DuplicateKey, EmptyText, InvalidKey
from nri_resmgr.stub.fields import KEYED, content_at, level_of
from nri_resmgr.stub.model import (
    CdiDevice,
    Device,
    DeviceCgroupRule,
    HugepageLimit,
    KeyValue,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Mount,
    Namespace,
    Pids,
    Rlimit,
)

StructT = TypeVar("StructT", bound=Struct)

has_builders(__name__)

# In front of a key: marks it as removed.
REMOVED: Final = "-"

# The parts that adjustments and updates have both.
RESOURCE_PARTS: Final[Mapping[str, type[Struct]]] = {
    "resources": LinuxResources,
    "cpu": LinuxCpu,
    "memory": LinuxMemory,
}

# The attribute that is the key of an item, by the path of the list.
_KEYS: Final = {field.path: field.key for field in KEYED if field.key}

# The class of an item, likewise.
_ITEMS: Final[Mapping[str, type[Struct]]] = {
    "mounts": Mount,
    "env": KeyValue,
    "rlimits": Rlimit,
    "cdi_devices": CdiDevice,
    "linux.devices": Device,
    "linux.namespaces": Namespace,
    "linux.resources.hugepage_limits": HugepageLimit,
}


class ResourceSetters(Struct, frozen=True, repr_omit_defaults=True):
    """Setters of Linux resources; each returns a new value and changes nothing.

    A result that is thrown away is a `DiscardedResult`, a warning with the line of it.

    Raises:
        BadField: An argument has another type than the field.
        DuplicateKey: The field, or the key of it, is already set.
        EmptyText: ``set_cpus`` or ``set_mems`` without any CPU or node.
        InvalidKey: A key is empty or begins with "-".
    """

    # What a setter creates if it is absent, by the last name of its path.
    _parts: ClassVar[Mapping[str, type[Struct]]]

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources to set; all absent if none are."""
        present: LinuxResources | None = content_at(self, "linux.resources")
        return present or LinuxResources()

    @property
    def needs_level(self) -> NriLevel:
        """The lowest NRI level whose runtimes read all fields that are set."""
        return level_of(self)

    def set_cpus(self, cpus: str) -> Self:
        """Set cpuset.cpus in the kernel's list format, such as ``0-3,8``."""
        return self._set_text("linux.resources.cpu.cpus", cpus)

    def set_mems(self, mems: str) -> Self:
        """Set cpuset.mems in the kernel's list format, such as ``0-1``."""
        return self._set_text("linux.resources.cpu.mems", mems)

    def set_cpu_shares(self, shares: int) -> Self:
        """Set the relative CPU weight; 1024 stands for one CPU."""
        return self._set("linux.resources.cpu.shares", shares, int)

    def set_cpu_quota(self, quota: int) -> Self:
        """Set the CPU time per period, in microseconds; -1 is unlimited."""
        return self._set("linux.resources.cpu.quota", quota, int)

    def set_cpu_period(self, period: int) -> Self:
        """Set the period of the CPU quota, in microseconds."""
        return self._set("linux.resources.cpu.period", period, int)

    def set_cpu_realtime_runtime(self, runtime: int) -> Self:
        """Set the realtime CPU time per period, in microseconds."""
        return self._set("linux.resources.cpu.realtime_runtime", runtime, int)

    def set_cpu_realtime_period(self, period: int) -> Self:
        """Set the period of the realtime CPU time, in microseconds."""
        return self._set("linux.resources.cpu.realtime_period", period, int)

    def set_memory_limit(self, limit: int) -> Self:
        """Set the memory limit in bytes; runtimes set the swap limit to the same."""
        return self._set("linux.resources.memory.limit", limit, int)

    def set_memory_reservation(self, reservation: int) -> Self:
        """Set the soft memory limit in bytes."""
        return self._set("linux.resources.memory.reservation", reservation, int)

    def set_memory_swap(self, swap: int) -> Self:
        """Set the limit of memory and swap together, in bytes."""
        return self._set("linux.resources.memory.swap", swap, int)

    def set_memory_kernel(self, kernel: int) -> Self:
        """Set the kernel memory limit in bytes; cgroup v1 only."""
        return self._set("linux.resources.memory.kernel", kernel, int)

    def set_memory_kernel_tcp(self, kernel_tcp: int) -> Self:
        """Set the TCP buffer limit in bytes; cgroup v1 only."""
        return self._set("linux.resources.memory.kernel_tcp", kernel_tcp, int)

    def set_memory_swappiness(self, swappiness: int) -> Self:
        """Set the swappiness, 0 to 100; cgroup v1 only."""
        return self._set("linux.resources.memory.swappiness", swappiness, int)

    def set_memory_disable_oom_killer(self, *, disable: bool = True) -> Self:
        """Set whether the OOM killer is disabled; cgroup v1 only."""
        return self._set("linux.resources.memory.disable_oom_killer", disable, bool)

    def set_memory_use_hierarchy(self, *, use: bool = True) -> Self:
        """Set whether memory is accounted hierarchically; cgroup v1 only."""
        return self._set("linux.resources.memory.use_hierarchy", use, bool)

    @overload
    def set_hugepage_limit(self, page_size: Mapping[str, int], /) -> Self: ...
    @overload
    def set_hugepage_limit(self, page_size: str, limit: int) -> Self: ...
    def set_hugepage_limit(
        self, page_size: str | Mapping[str, int], limit: int | None = None
    ) -> Self:
        """Set the limit in bytes for huge pages of one size, such as "2MB"."""
        if limit is None or not isinstance(page_size, str):
            return self._each("set_hugepage_limit", page_size, limit)
        check_type("linux.resources.hugepage_limits", limit, int)
        item = HugepageLimit(page_size, limit)
        return self._add("linux.resources.hugepage_limits", item)

    def set_blockio_class(self, name: str) -> Self:
        """Set the block I/O class, which must exist; "" clears it."""
        return self._set("linux.resources.blockio_class", name, str)

    def set_rdt_class(self, name: str) -> Self:
        """Set the RDT class, which must exist; "" clears it."""
        return self._set("linux.resources.rdt_class", name, str)

    @overload
    def set_unified(self, key: Mapping[str, str], /) -> Self: ...
    @overload
    def set_unified(self, key: str, value: str) -> Self: ...
    def set_unified(
        self, key: str | Mapping[str, str], value: str | None = None
    ) -> Self:
        """Set a cgroup v2 file by its name, such as "memory.high", or several."""
        if value is None or not isinstance(key, str):
            return self._each("set_unified", key, value)
        return self._put_text("linux.resources.unified", key, value)

    def add_device_rule(self, rule: DeviceCgroupRule) -> Self:
        """Append a device cgroup rule; rules accumulate and never conflict."""
        check_type("linux.resources.devices", rule, DeviceCgroupRule)
        rules = (*self.resources.devices, rule)
        return self._with("linux.resources.devices", rules)

    def set_pids_limit(self, limit: int) -> Self:
        """Set the maximum number of tasks; -1 is unlimited."""
        check_type("linux.resources.pids", limit, int)
        return self._set("linux.resources.pids", Pids(limit), Pids)

    def _set(self, path: str, content: object, kind: type) -> Self:
        """Set a field that still has its default."""
        check_type(path, content, kind)
        if content_at(self, path) is not None:
            raise DuplicateKey(path)
        return self._with(path, content)

    def _set_text(self, path: str, text: str) -> Self:
        """Set a field in which "" means "unchanged"."""
        if text == "":
            raise EmptyText(path)
        return self._set(path, text, str)

    def _put(self, path: str, key: str, content: object, mark: str = "") -> Self:
        """Set one key of a map, or mark it as `REMOVED`."""
        key = mark + _plain(path, key)
        entries = content_at(self, path) or {}
        if key in entries:
            raise DuplicateKey(path, key)
        return self._with(path, {**entries, key: content})

    def _put_text(self, path: str, key: str, text: str) -> Self:
        """Set one key of a map of texts."""
        check_type(path, text, str)
        return self._put(path, key, text)

    def _add(self, path: str, item: Struct, mark: str = "") -> Self:
        """Add an item with a new key to a list, or mark its key as `REMOVED`."""
        check_type(path, item, _ITEMS[path])
        name = _KEYS[path]
        key = mark + _plain(path, getattr(item, name))
        items = content_at(self, path) or ()
        if key in [getattr(one, name) for one in items]:
            raise DuplicateKey(path, key)
        return self._with(path, (*items, replace(item, **{name: key})))

    def _with(self, path: str, content: object) -> Self:
        warn_if_discarded()
        return _replaced(self, path, content, self._parts)

    def _each(self, setter: str, entries: object, content: object) -> Self:
        """Call *setter* with each key of a mapping and its content."""
        if content is not None or not isinstance(entries, Mapping):
            raise TypeError(
                f"{setter}() takes a key and its value, or one mapping; got {entries!r}"
            )
        made = self
        for key, its in entries.items():
            made = getattr(made, setter)(key, its)
        return made


def check_type(path: str, content: object, kind: type) -> None:
    """Check an argument of a setter, where the traceback has the author's line.

    Raises:
        BadField: *content* is not of *kind*.
    """
    if not (
        isinstance(content, kind) or (kind is int and hasattr(content, "__index__"))
    ):
        got = type(content).__name__
        raise BadField(path, f"expected {kind.__name__}, got {got}: {content!r}")


def _plain(path: str, key: str) -> str:
    """Check that *key* is not empty, and that no runtime reads it as a removal."""
    check_type(path, key, str)
    if not key or key.startswith(REMOVED):
        raise InvalidKey(path, key)
    return key


def _replaced(
    value: StructT, path: str, content: object, parts: Mapping[str, type[Struct]]
) -> StructT:
    """Return *value* with *content* at *path*; absent parts on the way are made."""
    name, _, rest = path.partition(".")
    if rest:
        part = getattr(value, name) or parts[name]()
        content = _replaced(part, rest, content, parts)
    return replace(value, **{name: content})
