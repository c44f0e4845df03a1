"""The configuration of the dynamic-pools policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

import msgspec

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.pinned import PINNED_FIELDS, PinnedConfig
from nri_resmgr.config.policy_config import (
    AGENT,
    CONTROL,
    MEMORY_KEYS,
    PUBLISH,
    REBALANCE,
    read_agent_use,
    read_control,
    read_memory_use,
    read_publish_use,
    read_rebalance_use,
)
from nri_resmgr.config.table import Table, read_fields

_NO_CPUS: Final = "the CPUs of a pool change by themselves"

RESERVED: Final = "reserved"
"""The built-in pool of the node's own containers."""

SHARED: Final = "shared"
"""The built-in pool of containers that no other pool is for."""

_POOLS: Final = "pools"
_POOL: Final = ("namespaces", "cpuClass", "allocatorPriority")
_CLASSES: Final = "cpuClasses"
_PRIORITIES: Final = ("high", "normal", "low", "none")


class DynamicPoolConfig(msgspec.Struct, frozen=True):
    """One entry of ``pools``.

    Attributes:
        namespaces: Shell patterns of the namespaces whose containers run in it.
        cpu_class: The class of its CPUs; empty to leave them unchanged.
        allocator_priority: ``high``, ``normal``, ``low`` or ``none``.
    """

    name: str
    namespaces: tuple[str, ...] = ()
    cpu_class: str = ""
    allocator_priority: str = "normal"


class DynamicPoolsPolicyConfig(PinnedConfig, frozen=True):
    """A ``DynamicPoolsPolicy`` document; without pools all containers share all CPUs.

    Attributes:
        pools: In the order in which they get their CPUs.
    """

    kind: ClassVar[str] = "DynamicPoolsPolicy"

    pools: tuple[DynamicPoolConfig, ...] = ()


def read_dynamic_pools_policy(top: Table) -> DynamicPoolsPolicyConfig:
    """Read the ``spec`` of a document of this kind."""
    keys = (_POOLS, _CLASSES, CONTROL, AGENT, *MEMORY_KEYS, PUBLISH, REBALANCE)
    spec = top.table("spec", *PINNED_FIELDS, *keys)
    classes = _read_classes(spec)
    names = tuple(classes["cpu_classes"].classes) if classes else ()
    return DynamicPoolsPolicyConfig(
        pools=tuple(_pools(spec, names)),
        **classes,
        **read_fields(spec, PINNED_FIELDS, DynamicPoolsPolicyConfig()),
        **read_control(spec, "cpu"),
        **read_memory_use(spec),
        **read_agent_use(spec),
        **read_publish_use(spec, no_cpus=_NO_CPUS),
        **read_rebalance_use(spec),
    )


def _read_classes(spec: Table) -> dict[str, Any]:
    if not spec.rows.keys() & {_CLASSES, CONTROL}:
        return {}
    # Late: on the start path, and few documents have classes.
    from nri_resmgr.config.cpu_classes import read_of_dynamic_pools

    found = read_of_dynamic_pools(spec)
    return {"cpu_classes": found} if found else {}


def _pools(spec: Table, classes: tuple[str, ...]) -> Iterator[DynamicPoolConfig]:
    for name, row in spec.named(_POOLS, *_POOL):
        if name in (RESERVED, SHARED) and "namespaces" in row.rows:
            why = "not for a built-in pool"
            if name == RESERVED:
                why += ", which has those of reservedPoolNamespaces"
            raise BadSetting(row.at("namespaces"), why)
        cpu_class = row.choice("cpuClass", classes, "") if row.text("cpuClass") else ""
        yield DynamicPoolConfig(
            name,
            row.texts("namespaces"),
            cpu_class,
            row.choice("allocatorPriority", _PRIORITIES, "normal"),
        )
