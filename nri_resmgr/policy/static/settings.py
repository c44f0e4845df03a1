"""Settings of the static policy, and the CPUs that these make available."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from nri_resmgr.policy.cpu_pools import nodes_near
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import is_among
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet, QosClass


class StaticSettings(msgspec.Struct, frozen=True):
    """Settings, checked against the machine that they are for.

    Attributes:
        available: Online CPUs that the policy may use.
        reserved: Some of these, which are never granted exclusively. Not empty.
        reserved_namespaces: Shell patterns of namespaces whose containers run
            on the reserved CPUs.
        prefer_isolated: Whether a container that asks for one CPU gets a free
            isolated one.
        relaxed_isolation: Whether those that ask for several get isolated ones, too,
            where enough are free; an annotation can ask for that as well.
        borrow_isolated: Whether isolated CPUs complete a grant for which too few
            ordinary ones are free.
        publish_resources: Whether containers get a file with their CPUs.
        on_failure: Handling of a container when too few exclusive CPUs are free.
        place_pods: Whether CPUs are reserved for all containers of a new pod.
        shares_reserved: Whether the reserved CPUs belong to the shared pool.
        mixes: Whether a container with exclusive CPUs may run on shared ones besides.
    """

    shares_reserved: ClassVar[bool] = True
    mixes: ClassVar[bool] = False

    available: CpuSet
    reserved: CpuSet
    reserved_namespaces: tuple[str, ...] = ("kube-system",)
    pin_cpus: bool = True
    pin_memory: bool = True
    prefer_isolated: bool = True
    relaxed_isolation: bool = False
    borrow_isolated: bool = False
    publish_resources: bool = True
    on_failure: OnFailure = OnFailure.REFUSE
    place_pods: PodPlacement = PodPlacement.OFF

    def __post_init__(self) -> None:
        if not self.reserved or not self.reserved <= self.available:
            raise ValueError(f"cannot reserve {self.reserved!r} of {self.available!r}")

    def reserves_for(self, spec: ContainerSpec) -> bool:
        """Return whether a container runs on the reserved CPUs."""
        if spec.preferences.reserved is not None:
            return spec.preferences.reserved
        return is_among(spec.namespace, self.reserved_namespaces)

    def count_for(self, spec: ContainerSpec) -> int:
        """Return the number of exclusive CPUs that a container asks for."""
        return spec.whole_cpus

    def tries_isolated(self, spec: ContainerSpec) -> bool:
        """Return whether a container gets isolated CPUs where enough are free."""
        if spec.preferences.isolated is not None:
            return spec.preferences.isolated
        return self.relaxed_isolation or (
            self.prefer_isolated and self.count_for(spec) == 1
        )

    def pool_rule(self, spec: ContainerSpec) -> Rule | None:
        """Return why a container shares CPUs; None if it asks for exclusive ones."""
        preferences, count = spec.preferences, self.count_for(spec)
        if preferences.preserve_cpus:
            return Rule.PRESERVED
        if self.reserves_for(spec):
            asked = preferences.reserved
            return Rule.RESERVED_ASKED if asked else Rule.RESERVED_NAMESPACE
        if count:
            return Rule.SHARED_ASKED if preferences.shared else None
        return self.sharing_rule(spec)

    def sharing_rule(self, spec: ContainerSpec) -> Rule:
        """Return why a container's request is not one for exclusive CPUs."""
        if spec.qos is QosClass.GUARANTEED:
            return Rule.NOT_WHOLE_CPUS
        return Rule.NOT_GUARANTEED


class Supply(msgspec.Struct, frozen=True):
    """The CPUs of a machine by their use.

    Attributes:
        ordinary: CPUs that can be granted, and are shared otherwise.
        isolated: CPUs that can be granted to some containers only. They are never
            shared: the scheduler does not spread tasks over them.
        reserved: CPUs that are never granted.
        shared: The shared pool when nothing is granted.
        shared_mems: Memory nodes of the shared pool. They stay the same while the
            pool shrinks: the kernel would move pages of containers away, and back
            when the pool grows.
        reserved_mems: Memory nodes of the reserved CPUs.
    """

    ordinary: CpuSet
    isolated: CpuSet
    reserved: CpuSet
    shared: CpuSet
    shared_mems: NodeSet
    reserved_mems: NodeSet

    @classmethod
    def of(cls, settings: StaticSettings, machine: Machine) -> Supply:
        """Divide the CPUs of *machine*."""
        isolated = (settings.available & machine.isolated) - settings.reserved
        ordinary = settings.available - isolated - settings.reserved
        shared = ordinary | settings.reserved if settings.shares_reserved else ordinary
        return cls(
            ordinary=ordinary,
            isolated=isolated,
            reserved=settings.reserved,
            shared=shared,
            shared_mems=nodes_near(shared, machine),
            reserved_mems=nodes_near(settings.reserved, machine),
        )
