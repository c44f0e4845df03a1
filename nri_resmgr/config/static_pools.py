"""The configuration of the static-pools policy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar, Final, Self

import msgspec
from msgspec.structs import replace

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.policy_config import (
    AGENT,
    CONTROL,
    MEMORY_KEYS,
    PUBLISH,
    PolicyConfig,
    read_agent_use,
    read_control,
    read_memory_use,
    read_publish_use,
)
from nri_resmgr.config.table import Table
from nri_resmgr.values import CpuSet, InputError

SHARED: Final = "shared"
"""The pool of containers that name none; by default all CPUs that no pool has."""

_POOLS: Final = "pools"
_POOL: Final = ("exclusive", "cpuLists")
_LIST: Final = ("cpus", "socket")
_PIN_MEMORY: Final = "pinMemory"
_PUBLISH: Final = "publishResources"

_LAST_SOCKET: Final = 1 << 16


class CpuListConfig(msgspec.Struct, frozen=True):
    """One entry of ``cpuLists``.

    Attributes:
        path: Its place in the document.
        text: The CPUs as written, which containers get in their environment.
        socket: None for the one that has the CPUs.
    """

    path: str
    text: str
    cpus: CpuSet
    socket: int | None = None


class StaticPoolConfig(msgspec.Struct, frozen=True):
    """One entry of ``pools``.

    Attributes:
        path: Its place in the document.
        exclusive: Whether each list is for one container.
    """

    path: str
    name: str
    lists: tuple[CpuListConfig, ...]
    exclusive: bool = False


class StaticPoolsPolicyConfig(PolicyConfig, frozen=True):
    """A ``StaticPoolsPolicy`` document; without pools all containers share all CPUs.

    Attributes:
        pin_memory: Whether to set memory nodes of containers.
        publish_resources: Whether containers get a file with their CPUs.
        pools: No CPU is in two lists of these.
    """

    kind: ClassVar[str] = "StaticPoolsPolicy"

    pin_memory: bool = False
    publish_resources: bool = True
    pools: tuple[StaticPoolConfig, ...] = ()

    @property
    def named_cpus(self) -> tuple[tuple[str, CpuSet], ...]:
        """Paths of lists of CPUs, with the CPUs."""
        lists = (one for pool in self.pools for one in pool.lists)
        return tuple((f"{one.path}.cpus", one.cpus) for one in lists)

    def without_cpus(self, gone: CpuSet) -> Self:
        """Leave CPUs out of all lists.

        The built-in pool without any has the CPUs that no other pool has, as by
        default.
        """
        pools = [_without(pool, gone) for pool in self.pools]
        left = tuple(
            pool
            for pool in pools
            if pool.name != SHARED or any(one.cpus for one in pool.lists)
        )
        return replace(self, pools=left)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Paths of the pools: with their lists, none can be left for the shared one."""
        return tuple(one.path for one in self.pools)

    def without_sizes(self, paths: Collection[str]) -> Self:
        """Leave out some of the pools."""
        left = tuple(one for one in self.pools if one.path not in paths)
        return replace(self, pools=left)


def _without(pool: StaticPoolConfig, gone: CpuSet) -> StaticPoolConfig:
    lists = tuple(replace(one, cpus=one.cpus - gone) for one in pool.lists)
    return replace(pool, lists=lists)


def read_static_pools_policy(top: Table) -> StaticPoolsPolicyConfig:
    """Read the ``spec`` of a document of this kind."""
    spec = top.table(
        "spec", _PIN_MEMORY, _PUBLISH, _POOLS, CONTROL, AGENT, *MEMORY_KEYS, PUBLISH
    )
    pools = tuple(_pools(spec))
    _check_disjoint(pools)
    return StaticPoolsPolicyConfig(
        pin_memory=spec.flag(_PIN_MEMORY),
        publish_resources=spec.flag(_PUBLISH, default=True),
        pools=pools,
        **read_control(spec),
        **read_memory_use(spec),
        **read_agent_use(spec),
        **read_publish_use(spec),
    )


def _pools(spec: Table) -> Iterator[StaticPoolConfig]:
    for name, row in spec.named(_POOLS, *_POOL):
        exclusive = row.flag("exclusive")
        lists = tuple(_list(one) for one in row.tables("cpuLists", *_LIST))
        if name == SHARED and exclusive:
            why = "containers that name no pool share this one"
            raise BadSetting(row.at("exclusive"), why)
        if name == SHARED and not lists:
            why = "missing, expected the CPUs of containers that name no pool"
            raise BadSetting(row.at("cpuLists"), why)
        yield StaticPoolConfig(row.path, name, lists, exclusive)


def _list(row: Table) -> CpuListConfig:
    # A single CPU is a number in YAML.
    row.require("cpus", "CPUs, such as 4-6,12")
    text = (row.amount("cpus") or "").strip()
    try:
        cpus = CpuSet.parse(text)
    except InputError as error:
        raise BadSetting(row.at("cpus"), str(error)) from None
    if not cpus:
        raise BadSetting(row.at("cpus"), "missing, expected CPUs, such as 4-6,12")
    socket = row.number("socket", 0, _LAST_SOCKET, 0) if "socket" in row.rows else None
    return CpuListConfig(row.path, text, cpus, socket)


def _check_disjoint(pools: tuple[StaticPoolConfig, ...]) -> None:
    seen: list[tuple[CpuListConfig, str]] = []
    for pool in pools:
        for one in pool.lists:
            for other, name in seen:
                if both := one.cpus & other.cpus:
                    why = f"CPU {both} is in the list {other.text!r} of {name} already"
                    raise BadSetting(f"{one.path}.cpus", why)
            seen.append((one, pool.name))
