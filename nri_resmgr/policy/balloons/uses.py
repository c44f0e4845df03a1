"""What balloons have, and how much of it is granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.pins import allowed_cpus
from nri_resmgr.policy.balloons.settings import RESERVED
from nri_resmgr.policy.balloons.sizes import most_spare
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import NO_CPUS, MilliCpus, NodeSet

_CPU = 1000  # thousandths


def uses_of(state: BalloonsState, ground: Ground) -> tuple[PoolUse, ...]:
    """Go through the balloons, each before its components, and the CPUs of none.

    Labels of a balloon: ``type``, ``instance``, ``cpu_class``; ``min_cpus`` and
    ``max_cpus`` of its type, 0 for no limit; ``groups`` and ``components``, joined by
    commas; ``packages``, ``dies`` (``package/die``) and ``nodes`` of its CPUs.
    """
    wholes = (one for one in state.balloons.values() if not one.within)
    rows = (row for one in wholes for row in _family(one, one.load, state, ground))
    return (*rows, _idle(state, ground))


def _family(
    balloon: Balloon, load: int, state: BalloonsState, ground: Ground
) -> Iterator[PoolUse]:
    yield _of_balloon(balloon, load, state, ground)
    for name in balloon.parts:
        each = -(-load // len(balloon.parts))
        yield from _family(state.balloons[name], each, state, ground)


def _of_balloon(
    balloon: Balloon, load: int, state: BalloonsState, ground: Ground
) -> PoolUse:
    cpus, memory = balloon.cpus, state.memory
    allowed = allowed_cpus(balloon, state)
    is_reserved = _outermost(balloon, state).type == RESERVED
    zones = (memory.zone_of(one) for one in balloon.members if one in memory)
    mems = NodeSet.union(zones) or ground.nodes_of(allowed)
    free = 0 if balloon.within else most_spare(balloon, state, ground)
    return PoolUse(
        kind="balloon",
        name=balloon.name,
        cpus=cpus,
        within=balloon.within,
        shared=NO_CPUS if is_reserved else cpus,
        reserved=cpus if is_reserved else NO_CPUS,
        idle=allowed - cpus,
        capacity=MilliCpus(_CPU * len(cpus)),
        granted=MilliCpus(load),
        free=MilliCpus(max(free, 0)),
        mems=mems,
        memory=memory.capacity(mems),
        memory_granted=memory.usage(mems),
        containers=balloon.members,
        labels=_labels(balloon, state, ground),
    )


def _labels(
    balloon: Balloon, state: BalloonsState, ground: Ground
) -> Mapping[str, str]:
    kind, cpus, machine = ground.type_of(balloon), balloon.cpus, ground.machine
    groups = {state.seats[one].group for one in balloon.members} - {""}
    packages = (one.id for one in machine.packages if one.cpus & cpus)
    dies = (f"{one.package}/{one.id}" for one in machine.dies if one.cpus & cpus)
    return {
        "type": balloon.type,
        "instance": str(balloon.index),
        "cpu_class": kind.cpu_class,
        "min_cpus": str(kind.min_cpus),
        "max_cpus": str(kind.max_cpus or 0),
        "groups": ",".join(sorted(groups)),
        "components": ",".join(balloon.parts),
        "packages": ",".join(map(str, packages)),
        "dies": ",".join(dies),
        "nodes": str(ground.nodes_of(cpus)),
    }


def _idle(state: BalloonsState, ground: Ground) -> PoolUse:
    free = state.free
    return PoolUse(
        kind="idle",
        name="idle CPUs",
        cpus=free,
        shared=free - ground.machine.isolated,
        isolated=free & ground.machine.isolated,
        capacity=MilliCpus(_CPU * len(free)),
        free=MilliCpus(_CPU * len(free)),
        mems=ground.nodes_of(free),
    )


def _outermost(balloon: Balloon, state: BalloonsState) -> Balloon:
    while balloon.within:
        balloon = state.balloons[balloon.within]
    return balloon
