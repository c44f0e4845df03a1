"""The kind of the static-pools policy: reads its configuration and builds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.config import BadSetting
from nri_resmgr.config.static_pools import (
    SHARED,
    CpuListConfig,
    StaticPoolsPolicyConfig,
    read_static_pools_policy,
)
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policy.static_pools import (
    CpuList,
    StaticPool,
    StaticPoolsPolicy,
    StaticPoolsSettings,
    StaticPoolsState,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

_NO_SOCKET: Final = -1


class StaticPoolsKind(PolicyKind[StaticPoolsPolicyConfig]):
    """Entry point of this kind of policy."""

    name = "StaticPoolsPolicy"
    state = StaticPoolsState

    def read(self, top: Table) -> StaticPoolsPolicyConfig:
        """See `PolicyKind`."""
        return read_static_pools_policy(top)

    def build(
        self,
        config: StaticPoolsPolicyConfig,
        machine: Machine,
        tree: Tree | None,  # noqa: ARG002 - the document has all CPUs
    ) -> StaticPoolsPolicy:
        """See `PolicyKind`."""
        pools = {one.name: one for one in _pools(config, machine)}
        settings = StaticPoolsSettings(
            available=CpuSet.union(one.cpus for one in pools.values()),
            pools=pools,
            pin_memory=config.pin_memory,
            publish_resources=config.publish_resources,
        )
        return StaticPoolsPolicy(machine, settings)


def _pools(config: StaticPoolsPolicyConfig, machine: Machine) -> Iterator[StaticPool]:
    for pool in config.pools:
        lists = tuple(_list(one, machine) for one in pool.lists)
        found = StaticPool(pool.name, lists, pool.exclusive)
        if pool.name == SHARED and not found.cpus:
            why = f"no CPU of the pool {SHARED} is online"
            raise BadSetting(f"{pool.path}.cpuLists", why)
        yield found
    if SHARED in [pool.name for pool in config.pools]:
        return
    held = CpuSet.union(one.cpus for pool in config.pools for one in pool.lists)
    # The kernel balances no load over isolated CPUs, which this pool needs.
    left = machine.online - held - machine.isolated or machine.online - held
    if not left:
        why = f"no CPU is left for containers that name no pool; add a pool {SHARED}"
        raise BadSetting("$.spec.pools", why)
    yield StaticPool(SHARED, (CpuList(str(left), left, _socket_of(left, machine)),))


def _list(config: CpuListConfig, machine: Machine) -> CpuList:
    if unknown := config.cpus - machine.present:
        why = f"this machine has no CPU {unknown}"
        raise BadSetting(f"{config.path}.cpus", why)
    socket = config.socket
    if socket is None:
        socket = _socket_of(config.cpus, machine)
    return CpuList(config.text, config.cpus & machine.online, socket)


def _socket_of(cpus: CpuSet, machine: Machine) -> int:
    """Return the socket of CPUs; below 0 if they are of several, or offline."""
    found = {machine.package_of(cpu).id for cpu in cpus & machine.online}
    return found.pop() if len(found) == 1 else _NO_SOCKET


KIND: Final = StaticPoolsKind()
