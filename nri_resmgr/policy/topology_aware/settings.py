"""What the topology-aware policy is told to do."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.host_use import NO_CPU_CLASSES, CpuClassRules
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.scheduling import SchedulingClass
from nri_resmgr.values import CpuSet, QosClass

_NOTHING: Final[Mapping[str, str]] = {}


class PodPlacement(enum.StrEnum):
    """Whether pods are placed as a unit, where their requests are known beforehand.

    `SOFT` places containers one by one where the pod does not fit as a whole,
    `STRICT` refuses such a pod.
    """

    OFF = "off"
    SOFT = "soft"
    STRICT = "strict"


class TopologyAwareSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that fit the machine they were made for.

    Attributes:
        available: Online CPUs that the policy may use.
        reserved: Some of these, for reserved containers only. Not empty.
        reserved_namespaces: Shell patterns of namespaces whose containers run
            on the reserved CPUs.
        pin_cpus: Whether CPU sets and shares are told to the runtime.
        pin_memory: Whether memory nodes are.
        prefer_isolated: Whether a container that asks for one to two CPUs gets
            an isolated one where one is free.
        prefer_shared: Whether only containers that say so get CPUs of their own.
        colocate_pods: Whether containers of a pod attract each other.
        colocate_namespaces: Whether containers of a namespace do.
        cpu_priority: Of CPUs that containers get to themselves.
        unlimited_burstable: Where Burstable containers without a CPU limit go.
        scheduling_classes: By name.
        namespace_scheduling: Name of a class, by namespace.
        qos_scheduling: Name of a class, by QoS class.
        on_failure: What becomes of a container that fits nowhere.
        place_pods: Whether pods are placed as a unit.
        publish_resources: Whether containers are told what they have.
        cpu_classes: Which class the CPUs are in.
        shared_beside_own: Whether containers get shared CPUs beside whole ones that
            they have to themselves, where they ask for it by CRI-O's annotation.
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
    namespace_scheduling: Mapping[str, str] = _NOTHING
    qos_scheduling: Mapping[QosClass, str] = {}
    on_failure: OnFailure = OnFailure.REFUSE
    place_pods: PodPlacement = PodPlacement.OFF
    publish_resources: bool = True
    cpu_classes: CpuClassRules = NO_CPU_CLASSES
    shared_beside_own: bool = False
