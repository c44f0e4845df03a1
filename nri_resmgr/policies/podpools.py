"""The kind of the podpools policy: reads its configuration and builds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.config import BadSetting
from nri_resmgr.config.podpools import (
    InstanceUnit,
    PodpoolConfig,
    PodpoolsPolicyConfig,
    read_podpools_policy,
)
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.chosen_cpus import choose_cpus, reserved_cpus
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.policy.podpools import (
    DEFAULT,
    RESERVED,
    FillOrder,
    PodpoolsPolicy,
    PodpoolsSettings,
    PodpoolsState,
    PoolInstance,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet
from nri_resmgr.values.counts import count_text


class PodpoolsKind(PolicyKind[PodpoolsPolicyConfig]):
    """Entry point of this kind of policy."""

    name = "PodpoolsPolicy"
    state = PodpoolsState

    def read(self, top: Table) -> PodpoolsPolicyConfig:
        """See `PolicyKind`."""
        return read_podpools_policy(top)

    def build(
        self, config: PodpoolsPolicyConfig, machine: Machine, tree: Tree | None
    ) -> PodpoolsPolicy:
        """See `PolicyKind`."""
        available, reserved = choose_cpus(
            config.available, config.reserved, machine, tree
        )
        # The kernel balances no load over isolated CPUs, which a pool would need.
        ordinary = available - machine.isolated or available
        reserved = reserved_cpus(
            available, reserved, machine, whole_cores=config.reserve_whole_cores
        )
        instances = _instances(config, reserved, ordinary, machine)
        settings = PodpoolsSettings(
            available=ordinary | reserved,
            instances={one.name: one for one in instances},
            reserved_namespaces=config.reserved_pool_namespaces,
            pin_cpus=config.pin_cpu,
            pin_memory=config.pin_memory,
            publish_resources=config.publish_resources,
        )
        return PodpoolsPolicy(machine, settings)


def _instances(
    config: PodpoolsPolicyConfig, reserved: CpuSet, ordinary: CpuSet, machine: Machine
) -> Iterator[PoolInstance]:
    """Yield all instances: the reserved one, those of pools, then the default one."""
    pools = {one.name: one for one in config.pools}
    of_reserved, of_default = pools.pop(RESERVED, None), pools.pop(DEFAULT, None)
    yield PoolInstance(
        RESERVED, RESERVED, reserved, of_reserved.max_pods if of_reserved else 0
    )
    free, mine = ordinary - reserved, CpuSet()
    if of_default is not None:
        mine = _take(of_default, free, machine)
    free -= mine
    size = len(free)
    for pool in pools.values():
        for number in range(_count(pool, size)):
            cpus = _take(pool, free, machine)
            free -= cpus
            name = f"{pool.name}[{number}]"
            order = FillOrder(pool.fill_order)
            yield PoolInstance(name, pool.name, cpus, pool.max_pods, order)
    # What is left, and never nothing: pods run here whose pool has no room.
    yield PoolInstance(DEFAULT, DEFAULT, mine | free or reserved)


def _count(pool: PodpoolConfig, size: int) -> int:
    """Return the number of instances, where pools have *size* CPUs in all."""
    match pool.unit:
        case InstanceUnit.INSTANCES:
            return pool.amount
        case InstanceUnit.PERCENT:
            return size * pool.amount // 100 // pool.cpus
        case InstanceUnit.CPUS:
            if pool.amount > size:
                raise BadSetting(
                    f"{pool.path}.instances",
                    f"pools have only {count_text(size, 'CPU')}",
                )
            return pool.amount // pool.cpus


def _take(pool: PodpoolConfig, free: CpuSet, machine: Machine) -> CpuSet:
    if pool.cpus > len(free):
        left = f"{len(free)} ({free})" if free else "none"
        raise BadSetting(
            f"{pool.path}.cpu",
            f"an instance of {pool.name} needs {count_text(pool.cpus, 'CPU')}, and of "
            f"those for pools are left: {left}; reserve fewer, or have fewer instances",
        )
    return allocate_cpus(CpuRequest(pool.cpus, free), machine).cpus


KIND: Final = PodpoolsKind()
