"""The kind of the static-plus policy: reads its configuration and builds it."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config import Amount
from nri_resmgr.config.static_plus_policy import (
    StaticPlusPolicyConfig,
    read_static_plus_policy,
)
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.chosen_cpus import choose_cpus, reserved_cpus
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policy.records import Records
from nri_resmgr.policy.static import OnFailure, records
from nri_resmgr.policy.static_plus import StaticPlusPolicy, StaticPlusSettings
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

_FIRST: Final = CpuSet.of(0)


class StaticPlusKind(PolicyKind[StaticPlusPolicyConfig]):
    """Entry point of this kind of policy."""

    name = "StaticPlusPolicy"

    def read(self, top: Table) -> StaticPlusPolicyConfig:
        """See `PolicyKind`."""
        return read_static_plus_policy(top)

    def build(
        self, config: StaticPlusPolicyConfig, machine: Machine, tree: Tree | None
    ) -> StaticPlusPolicy:
        """See `PolicyKind`."""
        available, reserved = choose_cpus(
            config.available, config.reserved, machine, tree
        )
        ordinary = available - machine.isolated or available
        # As in CRI-RM: the kernel's own work prefers CPU 0.
        if config.reserved == Amount(1) and ordinary >= _FIRST:
            reserved = _FIRST
        settings = StaticPlusSettings(
            available=available,
            reserved=reserved_cpus(
                available, reserved, machine, whole_cores=config.reserve_whole_cores
            ),
            reserved_namespaces=config.reserved_pool_namespaces,
            pin_cpus=config.pin_cpu,
            pin_memory=config.pin_memory,
            prefer_isolated=config.prefer_isolated_cpus,
            publish_resources=config.publish_resources,
            on_failure=OnFailure(config.on_failure),
            place_pods=PodPlacement(config.place_pods),
        )
        return StaticPlusPolicy(machine, settings)

    def records(self) -> Records:
        """See `PolicyKind`."""
        return records


KIND: Final = StaticPlusKind()
