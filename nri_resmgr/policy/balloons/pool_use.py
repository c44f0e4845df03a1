"""The use of each balloon and of the idle CPUs, for status and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import max_free_capacity
from nri_resmgr.policy.balloons.settings import RESERVED
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import NO_CPUS, MilliCpus, NodeSet

_CPU = 1000  # thousandths


def pool_uses(state: State, context: Context) -> tuple[PoolUse, ...]:
    """Return the use of all balloons, each before its components, and of idle CPUs.

    Labels of a balloon: ``type``, ``instance``, ``cpu_class``; ``min_cpus`` and
    ``max_cpus`` of its type, 0 for no limit; ``groups`` and ``components``, joined by
    commas; ``packages``, ``dies`` (``package/die``) and ``nodes`` of its CPUs.
    """
    wholes = (one for one in state.balloons.values() if not one.within)
    rows = (row for one in wholes for row in _family(one, one.load, state, context))
    return (*rows, _idle(state, context))


def _family(
    balloon: Balloon, load: int, state: State, context: Context
) -> Iterator[PoolUse]:
    yield _of_balloon(balloon, load, state, context)
    for name in balloon.parts:
        # Components carry equal shares of the load.
        each = -(-load // len(balloon.parts))
        yield from _family(state.balloons[name], each, state, context)


def _of_balloon(balloon: Balloon, load: int, state: State, context: Context) -> PoolUse:
    cpus, memory = balloon.cpus, state.memory
    allowed = state.allowed_cpus(balloon)
    is_reserved = _outermost(balloon, state).type == RESERVED
    zones = (memory.zone_of(one) for one in balloon.members if one in memory)
    mems = NodeSet.union(zones) or context.nodes_of(allowed)
    # Counted once, in the outermost balloon.
    free = 0 if balloon.within else max_free_capacity(balloon, state, context)
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
        labels=_labels(balloon, state, context),
    )


def _labels(balloon: Balloon, state: State, context: Context) -> Mapping[str, str]:
    kind, cpus, machine = context.type_of(balloon), balloon.cpus, context.machine
    groups = {state.memberships[one].group for one in balloon.members} - {""}
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
        "nodes": str(context.nodes_of(cpus)),
    }


def _idle(state: State, context: Context) -> PoolUse:
    free = state.free
    return PoolUse(
        kind="idle",
        name="idle CPUs",
        cpus=free,
        shared=free - context.machine.isolated,
        isolated=free & context.machine.isolated,
        capacity=MilliCpus(_CPU * len(free)),
        free=MilliCpus(_CPU * len(free)),
        mems=context.nodes_of(free),
    )


def _outermost(balloon: Balloon, state: State) -> Balloon:
    while balloon.within:
        balloon = state.balloons[balloon.within]
    return balloon
