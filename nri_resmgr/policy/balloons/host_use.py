"""What the host does for the CPUs of balloons: class, interrupts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.classes.irq.requests import BalloonCpus
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values import NO_CPUS, CpuSet


def host_use_of(state: BalloonsState, ground: Ground) -> HostUse:
    """Say what the host's own settings follow; nothing where nobody is pinned."""
    settings = ground.settings
    if not settings.pin_cpus:
        return HostUse()
    return HostUse(
        _cpus_by_class(state, ground),
        balloons=tuple(_of_balloons(state, ground)) if _says(ground) else (),
        isolated=tuple(_isolated(state)),
        available=settings.available,
    )


def _says(ground: Ground) -> bool:
    """Tell whether any type says anything about interrupts."""
    return any(one.interrupts for one in ground.settings.types)


def _of_balloons(state: BalloonsState, ground: Ground) -> list[BalloonCpus]:
    found = []
    for balloon in state.balloons.values():
        rule = ground.type_of(balloon).interrupts
        # One without containers does not count.
        if rule and balloon.members:
            found.append(BalloonCpus(balloon.cpus, rule))
    return found


def _isolated(state: BalloonsState) -> Iterator[Isolated]:
    """Yield those who ask for it and have whole CPUs, alone in their balloon."""
    for key, entry in state.ledger.entries.items():
        spec = entry.spec
        wish = spec.preferences.isolation
        if wish and spec.whole_cpus and (cpus := _own_cpus(key, state)):
            yield Isolated(spec.id, cpus, wish, spec.cgroup, spec.pid)


def _own_cpus(container: str, state: BalloonsState) -> CpuSet:
    """Return the CPUs of a container's balloon; none where others are in it."""
    seat = state.seats.get(container)
    balloon = state.balloons.get(seat.balloon) if seat else None
    if balloon is None or balloon.members != (container,):
        return NO_CPUS
    return balloon.cpus


def _cpus_by_class(state: BalloonsState, ground: Ground) -> Mapping[str, CpuSet]:
    """Say which CPUs are in which class.

    CPUs of balloons whose type names no class are as those of no balloon.
    """
    settings = ground.settings
    if not settings.cpu_classes:
        return {}
    found: dict[str, CpuSet] = {}
    rest = settings.available
    for balloon in state.balloons.values():
        name = ground.type_of(balloon).cpu_class
        if name and not balloon.parts:  # those have no CPUs but their components'
            found[name] = found.get(name, NO_CPUS) | balloon.cpus
            rest -= balloon.cpus
    if settings.idle_cpu_class and rest:
        idle = found.get(settings.idle_cpu_class, NO_CPUS)
        found[settings.idle_cpu_class] = idle | rest
    return {name: cpus for name, cpus in found.items() if cpus}
