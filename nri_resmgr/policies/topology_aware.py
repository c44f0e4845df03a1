"""The kind of the topology-aware policy: reads its configuration and builds it."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.table import Table
from nri_resmgr.config.topology_aware import TopologyAwareConfig, read_topology_aware
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.chosen_cpus import choose_cpus, reserved_cpus
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.host_use import NO_CPU_CLASSES, CpuClassRules
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.records import Records
from nri_resmgr.policy.topology_aware import records
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import (
    TopologyAwareSettings,
)
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine


def topology_aware_settings(
    config: TopologyAwareConfig, machine: Machine, tree: Tree | None = None
) -> TopologyAwareSettings:
    """Make the policy's settings for *machine*.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """
    available, reserved = choose_cpus(config.available, config.reserved, machine, tree)
    return TopologyAwareSettings(
        available=available,
        reserved=reserved_cpus(
            available, reserved, machine, whole_cores=config.reserve_whole_cores
        ),
        reserved_namespaces=config.reserved_pool_namespaces,
        pin_cpus=config.pin_cpu,
        pin_memory=config.pin_memory,
        prefer_isolated=config.prefer_isolated_cpus,
        prefer_shared=config.prefer_shared_cpus,
        colocate_pods=config.colocate_pods,
        colocate_namespaces=config.colocate_namespaces,
        cpu_priority=CpuPriority(config.default_cpu_priority),
        unlimited_burstable=TreeLevel(config.unlimited_burstable),
        scheduling_classes=config.scheduling_classes,
        namespace_scheduling=config.namespace_scheduling,
        qos_scheduling=config.qos_scheduling,
        on_failure=OnFailure(config.on_failure),
        place_pods=PodPlacement(config.place_pods),
        publish_resources=config.publish_resources,
        cpu_classes=_cpu_classes(config),
        shared_beside_exclusive=config.isolation,
    )


def _cpu_classes(config: TopologyAwareConfig) -> CpuClassRules:
    use = config.cpu_classes
    # Without pinning it is not known which CPUs a container uses.
    if use is None or not config.pin_cpu:
        return NO_CPU_CLASSES
    return CpuClassRules(tuple(use.classes), use.shared, use.reserved, use.exclusive)


class TopologyAwareKind(PolicyKind[TopologyAwareConfig]):
    """Entry point of this kind of policy."""

    name = "TopologyAwarePolicy"

    def read(self, top: Table) -> TopologyAwareConfig:
        """See `PolicyKind`."""
        return read_topology_aware(top)

    def build(
        self, config: TopologyAwareConfig, machine: Machine, tree: Tree | None
    ) -> TopologyAwarePolicy:
        """See `PolicyKind`."""
        settings = topology_aware_settings(config, machine, tree)
        return TopologyAwarePolicy(machine, settings)

    def records(self) -> Records:
        """See `PolicyKind`."""
        return records


KIND: Final = TopologyAwareKind()
