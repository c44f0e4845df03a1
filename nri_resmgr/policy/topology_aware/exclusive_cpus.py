"""What the host does for CPUs that containers have to themselves: class, interrupts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from nri_resmgr.classes.irq.requests import ContainerCpus
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.exclusive_cpu_errors import NoCpusOfItsOwn, UnknownCpuClass
from nri_resmgr.policy.host_use import CpuClassRules, HostUse
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import NO_CPUS, CpuSet, QosClass


def check_wishes(spec: ContainerSpec, grant: Grant, rules: CpuClassRules) -> None:
    """Refuse a container whose annotation asks for what it cannot have.

    An annotation of the whole pod is about those of its containers that have CPUs to
    themselves, so only a class' name has to be right there.

    Raises:
        UnknownCpuClass: There is no such class.
        NoCpusOfItsOwn: The container has no CPUs to itself.

    Source:
        nri-plugins, docs/resource-policy/policy/topology-aware.md.
    """
    cpu_class, irq = spec.preferences.cpu_class, spec.preferences.irq
    if cpu_class and cpu_class.name not in rules.names:
        key, name = cpu_class.key, cpu_class.name
        raise UnknownCpuClass(spec.title, key, name, rules.names)
    if _has_own_cpus(spec, grant):
        return
    for wish in (cpu_class, irq):
        if wish and wish.of_container:
            raise NoCpusOfItsOwn(spec.title, wish.key, _why_not(spec))


def host_use_of(state: TopologyAwareState, settings: TopologyAwareSettings) -> HostUse:
    """Say what the host's own settings are to follow; nothing where nobody is pinned.

    Interrupts are listed only if any container says something about them.
    """
    if not settings.pin_cpus:
        return HostUse()
    own = tuple(_own(state))
    return HostUse(
        _cpus_by_class(own, settings),
        tuple(
            ContainerCpus(cpus, spec.preferences.irq.affinity)
            for spec, cpus in own
            if spec.preferences.irq
        ),
        isolated=tuple(_isolated(own)),
        available=settings.available,
    )


def _isolated(
    own: tuple[tuple[ContainerSpec, CpuSet], ...],
) -> Iterator[Isolated]:
    """Yield those who ask for it and have whole CPUs, which they share with nobody."""
    for spec, cpus in own:
        wish = spec.preferences.isolation
        if wish and spec.whole_cpus:
            yield Isolated(spec.id, cpus, wish, spec.cgroup, spec.pid)


def _own(state: TopologyAwareState) -> Iterator[tuple[ContainerSpec, CpuSet]]:
    for key, entry in state.ledger.entries.items():
        grant = state.grants[key]
        if _has_own_cpus(entry.spec, grant):
            yield entry.spec, grant.cpus


def _has_own_cpus(spec: ContainerSpec, grant: Grant) -> bool:
    return spec.qos is QosClass.GUARANTEED and bool(grant.cpus)


def _why_not(spec: ContainerSpec) -> str:
    if spec.qos is not QosClass.GUARANTEED:
        return f"the container is {spec.qos}"
    return "the container shares its CPUs"


def _cpus_by_class(
    own: tuple[tuple[ContainerSpec, CpuSet], ...], settings: TopologyAwareSettings
) -> Mapping[str, CpuSet]:
    rules = settings.cpu_classes
    if not rules.names:
        return {}
    named = [(_class_of(spec, rules), cpus) for spec, cpus in own]
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
    """Name the class of CPUs that a container has to itself; empty for the shared."""
    wish = spec.preferences.cpu_class
    # A class that was there when the container came may be gone by now.
    return wish.name if wish and wish.name in rules.names else rules.exclusive
