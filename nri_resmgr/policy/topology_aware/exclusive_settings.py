"""Host settings of exclusive CPUs: CPU class, interrupts, isolation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from nri_resmgr.classes.irq.requests import ContainerCpus
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.host_use import CpuClassRules, HostUse
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.errors import (
    ExclusiveCpusMissing,
    UnknownCpuClass,
)
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import NO_CPUS, CpuSet, QosClass


def check_class_requests(
    spec: ContainerSpec, grant: Grant, rules: CpuClassRules
) -> None:
    """Check annotations that require exclusive CPUs.

    An annotation of the whole pod only concerns its containers with exclusive CPUs, so
    that for the others only the name of the class is checked.

    Raises:
        UnknownCpuClass: There is no such class.
        ExclusiveCpusMissing: The container has no exclusive CPUs.

    Source:
        nri-plugins, docs/resource-policy/policy/topology-aware.md.
    """
    cpu_class, irq = spec.preferences.cpu_class, spec.preferences.irq
    if cpu_class and cpu_class.name not in rules.names:
        key, name = cpu_class.key, cpu_class.name
        raise UnknownCpuClass(spec.title, key, name, rules.names)
    if _has_exclusive_cpus(spec, grant):
        return
    for request in (cpu_class, irq):
        if request and request.of_container:
            why = "the container shares its CPUs"
            if grant.kind is CpuKind.CLAIMED:
                why = "the container has those of a claim"
            elif spec.qos is not QosClass.GUARANTEED:
                why = f"the container is {spec.qos}"
            raise ExclusiveCpusMissing(spec.title, request.key, why)


def host_use_of(state: TopologyAwareState, settings: TopologyAwareSettings) -> HostUse:
    """Return what host settings depend on; nothing without pinning.

    Interrupts are only listed for containers with an annotation about them.
    """
    if not settings.pin_cpus:
        return HostUse()
    exclusive = tuple(exclusive_grants(state))
    return HostUse(
        _cpus_by_class(exclusive, settings),
        tuple(
            ContainerCpus(cpus, spec.preferences.irq.affinity)
            for spec, cpus in exclusive
            if spec.preferences.irq
        ),
        isolated=tuple(
            Isolated(spec.id, cpus, request, spec.cgroup, spec.pid)
            for spec, cpus in exclusive
            # Those that share CPUs besides cannot be isolated.
            if (request := spec.preferences.isolation) and spec.whole_cpus
        ),
        available=settings.available,
    )


def exclusive_grants(
    state: TopologyAwareState,
) -> Iterator[tuple[ContainerSpec, CpuSet]]:
    """Yield containers with exclusive CPUs; they may share others besides.

    Those of claims are not among them: several containers can have the same claim.
    """
    for key, entry in state.ledger.entries.items():
        grant = state.grants[key]
        if _has_exclusive_cpus(entry.spec, grant):
            yield entry.spec, grant.cpus


def _has_exclusive_cpus(spec: ContainerSpec, grant: Grant) -> bool:
    return (
        spec.qos is QosClass.GUARANTEED
        and bool(grant.cpus)
        and grant.kind is not CpuKind.CLAIMED
    )


def _cpus_by_class(
    exclusive: tuple[tuple[ContainerSpec, CpuSet], ...], settings: TopologyAwareSettings
) -> Mapping[str, CpuSet]:
    rules = settings.cpu_classes
    if not rules.names:
        return {}
    named = [(_class_of(spec, rules), cpus) for spec, cpus in exclusive]
    taken = CpuSet.union(cpus for name, cpus in named if name)
    reserved = settings.reserved - taken
    shared = settings.available - reserved - taken
    rest = ((rules.reserved or rules.shared, reserved), (rules.shared, shared))
    found: dict[str, CpuSet] = {}
    for name, cpus in chain(named, rest):
        if name and cpus:
            found[name] = found.get(name, NO_CPUS) | cpus
    return found


def _class_of(spec: ContainerSpec, rules: CpuClassRules) -> str:
    """Return the class of a container's exclusive CPUs; empty for the shared class."""
    request = spec.preferences.cpu_class
    # The class may have been removed from the configuration since the creation.
    return request.name if request and request.name in rules.names else rules.exclusive
