"""Which class the CPUs of the node are in, container by container and pool by pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.policy.cpu_class_errors import NoCpusOfItsOwn, UnknownCpuClass
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.host_use import CpuClassRules
from nri_resmgr.policy.topology_aware.books import Grant
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import NO_CPUS, CpuSet, QosClass


def check_cpu_class(spec: ContainerSpec, grant: Grant, rules: CpuClassRules) -> None:
    """Refuse a container whose annotation asks for a class that it cannot have.

    An annotation of the whole pod is about those of its containers that have CPUs to
    themselves, so only the name has to be right there.

    Raises:
        UnknownCpuClass: There is no such class.
        NoCpusOfItsOwn: The container has no CPUs to itself.

    Source:
        nri-plugins, docs/resource-policy/policy/topology-aware.md.
    """
    wish = spec.preferences.cpu_class
    if wish is None:
        return
    if wish.name not in rules.names:
        raise UnknownCpuClass(spec.title, wish.key, wish.name, rules.names)
    if wish.of_container and not has_own_cpus(spec, grant):
        raise NoCpusOfItsOwn(spec.title, wish.key, why_not(spec))


def has_own_cpus(spec: ContainerSpec, grant: Grant) -> bool:
    """Tell whether CPU classes and interrupts are any matter of a container's."""
    return spec.qos is QosClass.GUARANTEED and bool(grant.cpus)


def why_not(spec: ContainerSpec) -> str:
    """Say why a container has no CPUs to itself."""
    if spec.qos is not QosClass.GUARANTEED:
        return f"the container is {spec.qos}"
    return "the container shares its CPUs"


def cpus_by_class(
    state: TopologyAwareState, settings: TopologyAwareSettings
) -> Mapping[str, CpuSet]:
    """Say which CPUs are in which class; nothing of CPUs that are not ours."""
    rules = settings.cpu_classes
    if not rules.names:
        return {}
    own = tuple(_of_containers(state, rules))
    taken = CpuSet.union(cpus for _, cpus in own)
    reserved = settings.reserved - taken
    others = settings.available - reserved - taken
    found: dict[str, CpuSet] = {}
    for name, cpus in (
        *own,
        (rules.reserved or rules.shared, reserved),
        (rules.shared, others),
    ):
        if name and cpus:
            found[name] = found.get(name, NO_CPUS) | cpus
    return found


def _of_containers(
    state: TopologyAwareState, rules: CpuClassRules
) -> Iterator[tuple[str, CpuSet]]:
    for key, entry in state.ledger.entries.items():
        grant = state.grants[key]
        if has_own_cpus(entry.spec, grant) and (name := _class_of(entry.spec, rules)):
            yield name, grant.cpus


def _class_of(spec: ContainerSpec, rules: CpuClassRules) -> str:
    """Name the class of CPUs that a container has to itself; empty for the shared."""
    wish = spec.preferences.cpu_class
    # A class that was there when the container came may be gone by now.
    return wish.name if wish and wish.name in rules.names else rules.exclusive
