"""Claims of CPUs: exclusive CPUs of NUMA nodes, beside those of containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.claims import (
    Claim,
    ClaimDevice,
    ClaimPart,
    ClaimRefused,
    PreparedClaim,
    UnknownDevice,
    cpus_of,
)
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.make_room import movable_grants, without
from nri_resmgr.policy.topology_aware.nearest_place import making_room
from nri_resmgr.policy.topology_aware.place import PoolPlacement
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import (
    NodeView,
    TopologyAwareState,
    claim_id,
)
from nri_resmgr.policy.topology_aware.take import most_exclusive, take
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus, PolicyError, QosClass

# Its CPUs are those of the device, and no others of the pool.
_STRICT: Final = Preferences(strict_hints=True)


class _Taken(msgspec.Struct, frozen=True):
    """CPUs that a claim has of its first parts, and the node without them."""

    cpus: CpuSet
    view: NodeView


def prepare_claim(
    claim: Claim, state: TopologyAwareState, settings: TopologyAwareSettings
) -> tuple[TopologyAwareState, tuple[Grant, ...]]:
    """Give a claim CPUs of its own.

    Returns:
        The state with the claim, and new grants of containers without a request that
        make way.

    Raises:
        UnknownDevice: It has a device that is not of this node.
        ClaimRefused: The CPUs of a device do not suffice.
    """
    view = state.view(settings)
    whole = _demand(claim, claim.count, NO_CPUS, settings)
    found = making_room(whole, view, lambda node: _take_all(claim, state, node))
    prepared = PreparedClaim(claim, found.grant.cpus)
    moved = state.regrant(*found.displaced) if found.displaced else state
    return moved.put_claim(prepared), found.displaced


def devices_of(
    state: TopologyAwareState, settings: TopologyAwareSettings
) -> tuple[ClaimDevice, ...]:
    """Return a device for each NUMA node with CPUs that containers share."""
    return tuple(_devices(state, state.view(settings)))


def claim_titles(uids: Iterable[str], state: TopologyAwareState) -> str:
    """Return how claims are named to users."""
    claims = state.claims
    return ", ".join(claims[uid].claim.title for uid in uids if uid in claims)


def _devices(state: TopologyAwareState, view: NodeView) -> Iterator[ClaimDevice]:
    claimed = cpus_of(state.claims.values())
    # Containers without a request make way.
    bare = without(movable_grants(view), view) if view.tree.root.reserved else view
    machine = view.tree.machine
    for local in machine.node_cpus:
        if cpus := local & view.tree.root.sharable:
            node = machine.node_of(local.first).id
            mine = claimed & cpus
            more = _most(cpus, bare)
            yield ClaimDevice(f"numa-{node}", node, cpus, mine, len(mine) + more)


def _most(cpus: CpuSet, view: NodeView) -> int:
    pool = view.tree.smallest_with(cpus)
    demand = _demand(Claim("", "", "", ()), 1, cpus, view.settings)
    whole = max(view.pool_ledger.free_capacity(pool), 0) // ONE_CPU
    return min(whole, len(most_exclusive(cpus, demand, pool, view)))


def _take_all(claim: Claim, state: TopologyAwareState, view: NodeView) -> PoolPlacement:
    devices = {one.name: one for one in _devices(state, view)}
    taken = _Taken(NO_CPUS, view)
    for part in claim.parts:
        if (device := devices.get(part.device)) is None:
            raise UnknownDevice(claim, part.device, tuple(devices))
        taken = _take(claim, part, device.cpus, taken)
    pool = view.tree.smallest_with(taken.cpus)
    grant = Grant(claim_id(claim.uid), CpuKind.EXCLUSIVE, pool.id, taken.cpus)
    return PoolPlacement(Rule.CLAIM_PREPARED, grant, view.memory)


def _take(claim: Claim, part: ClaimPart, cpus: CpuSet, taken: _Taken) -> _Taken:
    view = taken.view
    demand = _demand(claim, part.count, cpus, view.settings)
    try:
        grant, _ = take(demand, view.tree.smallest_with(cpus), view)
    except PolicyError as error:
        most = _most(cpus, view)
        raise ClaimRefused(claim, part, cpus, most, str(error)) from None
    ledger = view.pool_ledger.add(grant)
    return _Taken(taken.cpus | grant.cpus, replace(view, pool_ledger=ledger))


def _demand(
    claim: Claim, count: int, cpus: CpuSet, settings: TopologyAwareSettings
) -> Demand:
    spec = ContainerSpec(
        id=claim_id(claim.uid),
        title=claim.title,
        qos=QosClass.GUARANTEED,
        request=MilliCpus(ONE_CPU * count),
        preferences=_STRICT,
        hints=(Hint("the claim's device", cpus=cpus),),
    )
    return Demand(
        spec,
        CpuKind.EXCLUSIVE,
        Rule.CLAIM_PREPARED,
        count=count,
        priority=settings.cpu_priority,
    )
