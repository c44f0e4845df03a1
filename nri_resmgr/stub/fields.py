"""All fields of an adjustment: their setters, removers and first NRI levels.

`make docs` writes them to docs/stub-fields.md, beside what runtimes do with each field.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nri_proto import NriLevel
from nri_resmgr.stub.contents import defaults_of

OLDEST: Final = NriLevel(0, 2)


class Field(msgspec.Struct, frozen=True):
    """One field of a ContainerAdjustment.

    Attributes:
        path: The attributes that lead to it; updates have those of the resources.
        setter: The method that sets it.
        level: First NRI level whose runtimes read it; older ones ignore it silently.
        remover: The method that marks it, or a key of it, as removed.
        key: The attribute that identifies an item of a repeated field; "" for a map;
            None for a field without keys.
        removal_level: First NRI level that carries out a removal.
    """

    path: str
    setter: str
    level: NriLevel = OLDEST
    remover: str = ""
    key: str | None = None
    removal_level: NriLevel = OLDEST


def _resource(path: str, setter: str, level: NriLevel = OLDEST) -> Field:
    return Field(f"linux.resources.{path}", setter, level)


FIELDS: Final = (
    Field("annotations", "set_annotation", remover="remove_annotation", key=""),
    Field(
        "mounts",
        "set_mount",
        remover="remove_mount",
        key="destination",
        removal_level=NriLevel(0, 7),
    ),
    Field("env", "set_env", remover="remove_env", key="key"),
    Field("hooks", "add_hooks"),
    Field("rlimits", "set_rlimit", NriLevel(0, 4), key="type"),
    Field("cdi_devices", "add_cdi_device", NriLevel(0, 7), key="name"),
    Field("args", "set_args", NriLevel(0, 10)),
    Field("linux.devices", "set_device", remover="remove_device", key="path"),
    Field("linux.cgroups_path", "set_cgroups_path"),
    Field("linux.oom_score_adj", "set_oom_score_adj", NriLevel(0, 7)),
    Field("linux.io_priority", "set_io_priority", NriLevel(0, 10)),
    Field("linux.seccomp_policy", "set_seccomp_policy", NriLevel(0, 10)),
    Field(
        "linux.namespaces", "set_namespace", NriLevel(0, 10), "remove_namespace", "type"
    ),
    Field("linux.sysctl", "set_sysctl", NriLevel(0, 11), "remove_sysctl", ""),
    Field(
        "linux.net_devices", "set_net_device", NriLevel(0, 11), "remove_net_device", ""
    ),
    Field("linux.scheduler", "set_scheduler", NriLevel(0, 11)),
    Field("linux.rdt.clos_id", "set_rdt_clos_id", NriLevel(0, 11), "remove_rdt"),
    Field("linux.rdt.schemata", "set_rdt_schemata", NriLevel(0, 11), "remove_rdt"),
    Field(
        "linux.rdt.enable_monitoring",
        "set_rdt_monitoring",
        NriLevel(0, 11),
        "remove_rdt",
    ),
    Field("linux.memory_policy", "set_memory_policy", NriLevel(0, 12)),
    _resource("memory.limit", "set_memory_limit"),
    _resource("memory.reservation", "set_memory_reservation"),
    _resource("memory.swap", "set_memory_swap"),
    _resource("memory.kernel", "set_memory_kernel"),
    _resource("memory.kernel_tcp", "set_memory_kernel_tcp"),
    _resource("memory.swappiness", "set_memory_swappiness"),
    _resource("memory.disable_oom_killer", "set_memory_disable_oom_killer"),
    _resource("memory.use_hierarchy", "set_memory_use_hierarchy"),
    _resource("cpu.shares", "set_cpu_shares"),
    _resource("cpu.quota", "set_cpu_quota"),
    _resource("cpu.period", "set_cpu_period"),
    _resource("cpu.realtime_runtime", "set_cpu_realtime_runtime"),
    _resource("cpu.realtime_period", "set_cpu_realtime_period"),
    _resource("cpu.cpus", "set_cpus"),
    _resource("cpu.mems", "set_mems"),
    Field("linux.resources.hugepage_limits", "set_hugepage_limit", key="page_size"),
    _resource("blockio_class", "set_blockio_class"),
    _resource("rdt_class", "set_rdt_class"),
    Field("linux.resources.unified", "set_unified", key=""),
    _resource("devices", "add_device_rule", NriLevel(0, 10)),
    _resource("pids", "set_pids_limit", NriLevel(0, 7)),
)

KEYED: Final = tuple(field for field in FIELDS if field.key is not None)

# Not in FIELDS: it is a mark, not a field that the runtime merges.
_RDT_REMOVAL: Final = Field("linux.rdt.remove", "remove_rdt", NriLevel(0, 11))


def content_at(change: msgspec.Struct, path: str) -> Any:
    """Return what *change* sets in the field at *path*; None if it is absent.

    0 and False are present.
    """
    parent: msgspec.Struct = change
    content: Any = change
    for name in path.split("."):
        parent, content = content, getattr(content, name, None)
        if content is None:
            return None
    return None if content == defaults_of(type(parent))[name] else content


def keys_of(field: Field, content: Any) -> tuple[str, ...]:
    """Return the keys in *content* of *field*, with removal marks and duplicates."""
    if field.key is None or content is None:
        return ()
    if not field.key:
        return tuple(content)
    return tuple([getattr(item, field.key) for item in content])


def level_of(change: msgspec.Struct) -> NriLevel:
    """Return the lowest NRI level whose runtimes read all fields that *change* sets."""
    levels = [OLDEST]
    for field in (*FIELDS, _RDT_REMOVAL):
        if (content := content_at(change, field.path)) is None:
            continue
        levels.append(field.level)
        if any(key.startswith("-") for key in keys_of(field, content)):
            levels.append(field.removal_level)
    return max(levels)
