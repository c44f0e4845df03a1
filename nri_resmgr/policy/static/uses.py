"""What the static policy's pools have, and how much of it is granted."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.memory import nodes_near
from nri_resmgr.policy.static.place import Room
from nri_resmgr.policy.static.state import StaticState
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import MilliCpus

_CPU = 1000  # thousandths


def uses_of(state: StaticState, room: Room) -> tuple[PoolUse, ...]:
    """Say what is shared, of it reserved, and had by one container each."""
    settings, specs = room.settings, [one.spec for one in state.ledger.entries.values()]
    sharing = [one for one in specs if one.id not in state.grants]
    own = [one for one in sharing if settings.reserves_for(one.namespace)]
    others = [one for one in sharing if not settings.reserves_for(one.namespace)]
    return (
        _exclusive(state, room),
        _shared(others, room),
        _reserved(own, room),
    )


def _exclusive(state: StaticState, room: Room) -> PoolUse:
    supply, taken = room.supply, room.taken
    unused = supply.isolated - taken
    return PoolUse(
        kind="exclusive",
        name="exclusive CPUs",
        cpus=taken | unused,
        isolated=unused,
        exclusive=taken,
        capacity=MilliCpus(_CPU * len(supply.ordinary | supply.isolated)),
        granted=MilliCpus(_CPU * len(taken)),
        free=MilliCpus(_CPU * len(room.ordinary)),
        mems=nodes_near(taken, room.machine),
        containers=tuple(key for key in state.ledger.entries if key in state.grants),
    )


def _shared(specs: list[ContainerSpec], room: Room) -> PoolUse:
    supply, cpus = room.supply, room.supply.shared - room.taken
    granted, capacity = _asked(specs), _CPU * len(cpus)
    return PoolUse(
        kind="shared",
        name="shared CPUs",
        cpus=cpus,
        shared=cpus - supply.reserved,
        reserved=cpus & supply.reserved,
        capacity=MilliCpus(capacity),
        granted=MilliCpus(granted),
        free=MilliCpus(max(capacity - granted, 0)),
        mems=supply.shared_mems,
        containers=tuple(one.id for one in specs),
    )


def _reserved(specs: list[ContainerSpec], room: Room) -> PoolUse:
    supply, cpus = room.supply, room.supply.reserved
    granted, capacity = _asked(specs), _CPU * len(cpus)
    return PoolUse(
        kind="reserved",
        name="reserved CPUs",
        cpus=cpus,
        within="shared CPUs",
        reserved=cpus,
        capacity=MilliCpus(capacity),
        granted=MilliCpus(granted),
        free=MilliCpus(max(capacity - granted, 0)),
        mems=supply.reserved_mems,
        containers=tuple(one.id for one in specs),
    )


def _asked(specs: Iterable[ContainerSpec]) -> int:
    return sum(one.request for one in specs)
