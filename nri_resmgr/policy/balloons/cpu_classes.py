"""Which class the CPUs of balloons, and those of none, are in."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.policy.balloons.ground import Ground
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.values import NO_CPUS, CpuSet


def cpus_by_class(state: BalloonsState, ground: Ground) -> Mapping[str, CpuSet]:
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
