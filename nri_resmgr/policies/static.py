"""The kind of the static policy: reads its configuration and builds it."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.static_policy import StaticPolicyConfig, read_static_policy
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.chosen_cpus import choose_cpus, reserved_cpus
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policy.records import Records
from nri_resmgr.policy.static import OnFailure, StaticPolicy, StaticSettings, records
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine


class StaticKind(PolicyKind[StaticPolicyConfig]):
    """Entry point of this kind of policy."""

    name = "StaticPolicy"

    def read(self, top: Table) -> StaticPolicyConfig:
        """See `PolicyKind`."""
        return read_static_policy(top)

    def build(
        self, config: StaticPolicyConfig, machine: Machine, tree: Tree | None
    ) -> StaticPolicy:
        """See `PolicyKind`."""
        available, reserved = choose_cpus(
            config.available, config.reserved, machine, tree
        )
        settings = StaticSettings(
            available=available,
            reserved=reserved_cpus(
                available, reserved, machine, whole_cores=config.reserve_whole_cores
            ),
            reserved_namespaces=config.reserved_pool_namespaces,
            pin_cpus=config.pin_cpu,
            pin_memory=config.pin_memory,
            prefer_isolated=config.prefer_isolated_cpus,
            relaxed_isolation=config.relaxed_isolation,
            borrow_isolated=config.borrow_isolated_cpus,
            publish_resources=config.publish_resources,
            on_failure=OnFailure(config.on_failure),
            place_pods=PodPlacement(config.place_pods),
        )
        return StaticPolicy(machine, settings)

    def records(self) -> Records:
        """See `PolicyKind`."""
        return records


KIND: Final = StaticKind()
