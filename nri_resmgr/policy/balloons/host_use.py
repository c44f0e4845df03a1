"""Host settings that follow balloons: CPU classes, interrupts, isolation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.classes.irq.requests import BalloonCpus
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values import NO_CPUS, CpuSet


def host_use_of(state: State, context: Context) -> HostUse:
    """Return what host settings follow; nothing without CPU pinning."""
    settings = context.settings
    if not settings.pin_cpus:
        return HostUse()
    return HostUse(
        _cpus_by_class(state, context),
        balloons=tuple(_of_balloons(state, context))
        if _sets_interrupts(context)
        else (),
        isolated=tuple(_isolated(state)),
        available=settings.available,
    )


def _sets_interrupts(context: Context) -> bool:
    return any(one.interrupts for one in context.settings.types)


def _of_balloons(state: State, context: Context) -> list[BalloonCpus]:
    found = []
    for balloon in state.balloons.values():
        rule = context.type_of(balloon).interrupts
        # A balloon without containers has no work to protect from interrupts.
        if rule and balloon.members:
            found.append(BalloonCpus(balloon.cpus, rule))
    return found


def _isolated(state: State) -> Iterator[Isolated]:
    """Yield containers that request isolation and have whole CPUs exclusively."""
    for key, entry in state.ledger.entries.items():
        spec = entry.spec
        requested = spec.preferences.isolation
        if requested and spec.whole_cpus and (cpus := _exclusive_cpus(key, state)):
            yield Isolated(spec.id, cpus, requested, spec.cgroup, spec.pid)


def _exclusive_cpus(container: str, state: State) -> CpuSet:
    """Return the CPUs of a container's balloon; none where others are in it."""
    membership = state.memberships.get(container)
    balloon = state.balloons.get(membership.balloon) if membership else None
    if balloon is None or balloon.members != (container,):
        return NO_CPUS
    return balloon.cpus


def _cpus_by_class(state: State, context: Context) -> Mapping[str, CpuSet]:
    """Return the CPUs of each class.

    CPUs of balloons whose type names no class get the class of idle CPUs.
    """
    settings = context.settings
    if not settings.cpu_classes:
        return {}
    found: dict[str, CpuSet] = {}
    rest = settings.available
    for balloon in state.balloons.values():
        name = context.type_of(balloon).cpu_class
        # A composite balloon has only the CPUs of its components, which are counted.
        if name and not balloon.parts:
            found[name] = found.get(name, NO_CPUS) | balloon.cpus
            rest -= balloon.cpus
    if settings.idle_cpu_class and rest:
        idle = found.get(settings.idle_cpu_class, NO_CPUS)
        found[settings.idle_cpu_class] = idle | rest
    return {name: cpus for name, cpus in found.items() if cpus}
