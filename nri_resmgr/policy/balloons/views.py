"""Views of balloons: their use, and what host settings depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nri_resmgr.classes.irq.requests import BalloonCpus
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import capacity
from nri_resmgr.policy.balloons.make_room import emptied
from nri_resmgr.policy.balloons.settings import RESERVED
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.policy.views import CpuRoom, PoolUse
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus, NodeSet


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
    is_reserved = state.outermost(balloon).type == RESERVED
    zones = (memory.zone_of(one) for one in balloon.members if one in memory)
    mems = NodeSet.union(zones) or context.nodes_of(allowed)
    # Counted once, in the outermost balloon.
    free = 0 if balloon.within else capacity(balloon, state, context) - load
    return PoolUse(
        kind="balloon",
        name=balloon.name,
        cpus=cpus,
        within=balloon.within,
        shared=NO_CPUS if is_reserved else cpus,
        reserved=cpus if is_reserved else NO_CPUS,
        idle=allowed - cpus,
        capacity=MilliCpus(ONE_CPU * len(cpus)),
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
        capacity=MilliCpus(ONE_CPU * len(free)),
        free=MilliCpus(ONE_CPU * len(free)),
        mems=context.nodes_of(free),
    )


def cpu_room_of(state: State, context: Context, cpus: CpuSet) -> CpuRoom:
    """Return what one more container can be granted exclusively of some CPUs.

    These are idle CPUs, as many as the largest balloon that any type allows can take,
    or those of an existing balloon whose CPUs are given and which is empty. Containers
    without a request make way.
    """
    for step in emptied(state, context):
        state = step.state  # each with more idle CPUs than the one before
    wholes = [one for one in state.balloons.values() if not one.within]
    reserved = CpuSet.union(one.cpus for one in wholes if one.type == RESERVED)
    idle, growth, given = len(state.free & cpus), 0, 0
    for kind in context.settings.types:
        if kind.name == RESERVED:
            continue
        mine = [one for one in wholes if one.type == kind.name]
        if kind.cpus:
            free = (len(one.cpus & cpus) for one in mine if not one.is_used)
            given = max(given, *free, 0)
            continue
        sizes = [len(one.cpus) for one in mine]
        if kind.max_balloons is None or len(mine) < kind.max_balloons:
            sizes.append(0)
        if kind.max_cpus is not None:
            growth = max(growth, *(kind.max_cpus - size for size in sizes), 0)
        elif sizes:
            growth = idle
    size = len(context.settings.available & cpus - reserved)
    return CpuRoom.of(ONE_CPU * size, ONE_CPU * max(min(idle, growth), given))


def host_use_of(state: State, context: Context) -> HostUse:
    """Return what host settings follow; nothing without CPU pinning."""
    settings = context.settings
    if not settings.pin_cpus:
        return HostUse()
    return HostUse(
        _cpus_by_class(state, context),
        # A balloon without containers has no work to protect from interrupts.
        balloons=tuple(
            BalloonCpus(one.cpus, rule)
            for one in state.balloons.values()
            if (rule := context.type_of(one).interrupts) and one.members
        ),
        isolated=tuple(_isolated(state)),
        available=settings.available,
    )


def _isolated(state: State) -> Iterator[Isolated]:
    """Yield containers that request isolation and have whole CPUs exclusively."""
    for spec, balloon in alone_in_balloon(state):
        if requested := spec.preferences.isolation:
            yield Isolated(spec.id, balloon.cpus, requested, spec.cgroup, spec.pid)


def alone_in_balloon(state: State) -> Iterator[tuple[ContainerSpec, Balloon]]:
    """Yield containers that request whole CPUs and are alone in their balloons.

    The CPUs of a balloon are exclusive to the only container in it.
    """
    for key, entry in state.ledger.entries.items():
        balloon = state.balloons.get(state.memberships[key].balloon)
        if not balloon or balloon.rooms:
            continue
        if balloon.members == (key,) and entry.spec.whole_cpus:
            yield entry.spec, balloon


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
