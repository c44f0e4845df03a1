"""The use of the static policy's pools, for status and metrics."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.memory import nodes_near
from nri_resmgr.policy.static.place import FreeCpus
from nri_resmgr.policy.static.state import StaticState
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import MilliCpus

_CPU = 1000  # thousandths


def pool_uses(state: StaticState, free: FreeCpus) -> tuple[PoolUse, ...]:
    """Return the use of exclusive, shared and reserved CPUs."""
    settings, specs = free.settings, [one.spec for one in state.ledger.entries.values()]
    sharing = [one for one in specs if one.id not in state.grants]
    reserved = [one for one in sharing if settings.reserves_for(one.namespace)]
    others = [one for one in sharing if not settings.reserves_for(one.namespace)]
    return (
        _exclusive(state, free),
        _shared(others, free),
        _reserved(reserved, free),
    )


def _exclusive(state: StaticState, free: FreeCpus) -> PoolUse:
    supply, taken = free.supply, free.taken
    unused = supply.isolated - taken
    return PoolUse(
        kind="exclusive",
        name="exclusive CPUs",
        cpus=taken | unused,
        isolated=unused,
        exclusive=taken,
        capacity=MilliCpus(_CPU * len(supply.ordinary | supply.isolated)),
        granted=MilliCpus(_CPU * len(taken)),
        free=MilliCpus(_CPU * len(free.ordinary)),
        mems=nodes_near(taken, free.machine),
        containers=tuple(key for key in state.ledger.entries if key in state.grants),
    )


def _shared(specs: list[ContainerSpec], free: FreeCpus) -> PoolUse:
    supply, cpus = free.supply, free.supply.shared - free.taken
    granted, capacity = _requested(specs), _CPU * len(cpus)
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


def _reserved(specs: list[ContainerSpec], free: FreeCpus) -> PoolUse:
    supply, cpus = free.supply, free.supply.reserved
    granted, capacity = _requested(specs), _CPU * len(cpus)
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


def _requested(specs: Iterable[ContainerSpec]) -> int:
    return sum(one.request for one in specs)
