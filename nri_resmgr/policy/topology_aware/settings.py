"""Settings of the topology-aware policy."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.host_use import NO_CPU_CLASSES, CpuClassRules
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.scheduling import SchedulingRules
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.values import CpuSet, QosClass
from nri_resmgr.values.scheduling import SchedulingClass


class TopologyAwareSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that fit the machine they were made for.

    Attributes:
        available: Online CPUs that the policy may use.
        reserved: The available CPUs for reserved containers only; not empty.
        reserved_namespaces: Shell patterns of namespaces whose containers run
            on the reserved CPUs.
        prefer_isolated: Whether containers that ask for one to two CPUs get an isolated
            one where one is free.
        prefer_shared: Whether containers only get exclusive CPUs on request.
        colocate_pods: Whether containers of a pod prefer the same pool.
        colocate_namespaces: Whether containers of a namespace do.
        cpu_priority: Preferred priority of exclusive CPUs.
        unlimited_burstable: Level of pools for Burstable containers without a CPU
            limit.
        namespace_scheduling: Name of a class, by namespace.
        qos_scheduling: Name of a class, by QoS class.
        shared_beside_exclusive: Whether CRI-O's annotation gives containers shared CPUs
            beside exclusive ones.
    """

    available: CpuSet
    reserved: CpuSet
    reserved_namespaces: tuple[str, ...] = ("kube-system",)
    pin_cpus: bool = True
    pin_memory: bool = True
    prefer_isolated: bool = True
    prefer_shared: bool = False
    colocate_pods: bool = False
    colocate_namespaces: bool = False
    cpu_priority: CpuPriority = CpuPriority.ANY
    unlimited_burstable: TreeLevel = TreeLevel.PACKAGE
    scheduling_classes: Mapping[str, SchedulingClass] = {}
    namespace_scheduling: Mapping[str, str] = {}
    qos_scheduling: Mapping[QosClass, str] = {}
    on_failure: OnFailure = OnFailure.REFUSE
    place_pods: PodPlacement = PodPlacement.OFF
    publish_resources: bool = True
    cpu_classes: CpuClassRules = NO_CPU_CLASSES
    shared_beside_exclusive: bool = False

    def scheduling_of(self, spec: ContainerSpec) -> SchedulingClass | None:
        """Choose a class, if any: by annotation, by namespace, or by QoS class."""
        return SchedulingRules(
            self.scheduling_classes, self.namespace_scheduling, self.qos_scheduling
        ).of(spec)
