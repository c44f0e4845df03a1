"""The kind of the dynamic-pools policy: reads its configuration and builds it."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config import BadSetting
from nri_resmgr.config.dynamic_pools import (
    DynamicPoolConfig,
    DynamicPoolsPolicyConfig,
    read_dynamic_pools_policy,
)
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.chosen_cpus import choose_cpus, reserved_cpus
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.dynamic_pools import (
    RESERVED,
    SHARED,
    DynamicPool,
    DynamicPoolsPolicy,
    DynamicPoolsSettings,
    DynamicPoolsState,
)
from nri_resmgr.topology import Machine


class DynamicPoolsKind(PolicyKind[DynamicPoolsPolicyConfig]):
    """Entry point of this kind of policy."""

    name = "DynamicPoolsPolicy"
    state = DynamicPoolsState

    def read(self, top: Table) -> DynamicPoolsPolicyConfig:
        """See `PolicyKind`."""
        return read_dynamic_pools_policy(top)

    def build(
        self, config: DynamicPoolsPolicyConfig, machine: Machine, tree: Tree | None
    ) -> DynamicPoolsPolicy:
        """See `PolicyKind`."""
        available, reserved = choose_cpus(
            config.available, config.reserved, machine, tree
        )
        # The kernel balances no load over isolated CPUs, which a pool would need.
        ordinary = available - machine.isolated or available
        reserved = reserved_cpus(
            available, reserved, machine, whole_cores=config.reserve_whole_cores
        )
        if config.reserved is not None and not ordinary - reserved:
            why = f"no CPU of {available} is left for pools; reserve fewer"
            raise BadSetting("$.spec.reservedResources.cpu", why)
        pools = {one.name: _pool(one) for one in config.pools}
        for name in (RESERVED, SHARED):
            pools.setdefault(name, DynamicPool(name))
        settings = DynamicPoolsSettings(
            available=ordinary | reserved,
            reserved=reserved,
            pools=pools,
            reserved_namespaces=config.reserved_pool_namespaces,
            pin_cpus=config.pin_cpu,
            pin_memory=config.pin_memory,
            publish_resources=config.publish_resources,
        )
        return DynamicPoolsPolicy(machine, settings)


def _pool(config: DynamicPoolConfig) -> DynamicPool:
    priority = config.allocator_priority
    return DynamicPool(
        name=config.name,
        namespaces=config.namespaces,
        cpu_class=config.cpu_class,
        priority=CpuPriority.ANY if priority == "none" else CpuPriority(priority),
    )


KIND: Final = DynamicPoolsKind()
