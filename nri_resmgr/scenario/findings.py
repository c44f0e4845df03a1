"""The result of a scenario: placements, refusals, headroom, spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Created, Pin
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.scenario.estimates import Estimate, estimates_of
from nri_resmgr.scenario.node import InProcessNode, RefusedRequest
from nri_resmgr.scenario.not_exclusive import (
    SharedGuaranteed,
    exclusive_by_container,
    exclusive_in,
)
from nri_resmgr.scenario.replicas import Group, grouped
from nri_resmgr.topology import Machine
from nri_resmgr.values import (
    Bytes,
    CpuSet,
    MilliCpus,
    NodeSet,
    PolicyError,
    QosClass,
)

_CPU: Final = 1000  # thousandths
_L3: Final = 3
_PROBE: Final = "one-more"  # a container that is only tried


class PlacedContainer(msgspec.Struct, frozen=True):
    """A container with its CPUs and memory nodes.

    Attributes:
        step: The step of the scenario that created it, counted from 0.
        title: ``namespace/pod/container``.
        qos: QoS class of its pod.
        cpus: CPUs that it may use; empty for any.
        exclusive: The exclusive ones of these.
        mems: Its memory nodes; empty for any.
        pool: The pool that grants its CPUs.
        estimates: Its amounts that are estimated.
        why_shared: The reason why it has no exclusive CPUs although it is Guaranteed;
            empty for other containers.
    """

    id: str
    step: int
    title: str
    qos: QosClass
    request: MilliCpus
    memory: Bytes
    cpus: CpuSet
    exclusive: CpuSet
    mems: NodeSet
    pool: str
    rule: str
    estimates: tuple[Estimate, ...] = ()
    why_shared: str = ""


class Largest(msgspec.Struct, frozen=True):
    """The most whole CPUs that one more Guaranteed container would be granted.

    Attributes:
        in_socket: CPUs of one socket.
        in_node: CPUs of one NUMA node.
        in_l3: CPUs of one level 3 cache; 0 if there is none.
    """

    anywhere: int = 0
    in_socket: int = 0
    in_node: int = 0
    in_l3: int = 0


class Spread(msgspec.Struct, frozen=True):
    """Titles of containers whose CPUs are in more than one part of the machine."""

    sockets: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    l3: tuple[str, ...] = ()


class Findings(msgspec.Struct, frozen=True):
    """A node after a scenario.

    Attributes:
        machine: The machine at the end.
        placements: The containers, in order of creation.
        refusals: The refused requests, in order.
        pools: CPUs and memory of each pool, and the grants.
        largest: The most CPUs for one more container.
        stranded: Free CPUs whose core has an exclusive CPU.
        spread: Containers with exclusive CPUs in several parts of the machine.
        shared_spread: The same of the other containers.
    """

    machine: Machine
    kind: str
    placements: tuple[PlacedContainer, ...]
    refusals: tuple[RefusedRequest, ...]
    pools: tuple[PoolUse, ...]
    largest: Largest
    stranded: CpuSet
    spread: Spread
    shared_spread: Spread


def findings_of(node: InProcessNode) -> Findings:
    """Describe the present state of a node."""
    plugin = node.plugin
    policy, machine, state = plugin.policy, plugin.machine, plugin.state
    pools, pins = policy.pools(state), policy.pins(state)
    taken, shared_guaranteed = exclusive_in(pools), SharedGuaranteed(policy, state)
    exclusive_cpus = exclusive_by_container(policy, state)
    placements = []
    for key, entry in state.ledger.entries.items():
        one = _placement(entry.spec, pins[key], exclusive_cpus[key], node)
        if one.qos is QosClass.GUARANTEED and not one.exclusive:
            why = shared_guaranteed.why(entry.spec, node.notes.causes.get(key))
            one = replace(one, why_shared=why)
        placements.append(one)
    exclusive = tuple(one for one in placements if one.exclusive)
    shared = tuple(one for one in placements if not one.exclusive)
    return Findings(
        machine=machine,
        kind=policy.kind,
        placements=tuple(placements),
        refusals=tuple(node.notes.refusals),
        pools=pools,
        largest=_largest(policy, state, machine),
        stranded=_stranded(pools, taken, machine),
        spread=_spread(exclusive, machine),
        shared_spread=_spread(shared, machine),
    )


def group_placements(
    placements: Iterable[PlacedContainer],
) -> tuple[Group[PlacedContainer], ...]:
    """Group the containers of replicas with equal results."""
    return grouped(placements, lambda one: replace(one, id="", title=""))


def group_refusals(
    refusals: Iterable[RefusedRequest],
) -> tuple[Group[RefusedRequest], ...]:
    """Group the refusals of replicas with equal reasons."""
    return grouped(refusals, lambda one: one.why.replace(one.title, ""))


def grantable(pools: tuple[PoolUse, ...]) -> CpuSet:
    """Return the CPUs that could still be granted exclusively."""
    idle = [pool for pool in pools if pool.kind == "idle"]
    return CpuSet.union(pool.shared | pool.isolated for pool in idle or pools)


def _placement(
    spec: ContainerSpec, pin: Pin, exclusive: CpuSet, node: InProcessNode
) -> PlacedContainer:
    reason = node.notes.reasons.get(spec.id)
    return PlacedContainer(
        id=spec.id,
        step=node.notes.created_in.get(spec.id, 0),
        title=spec.title,
        qos=spec.qos,
        request=spec.request,
        memory=spec.memory_request,
        cpus=pin.cpus,
        exclusive=exclusive,
        mems=pin.mems,
        pool=reason.pool if reason else "",
        rule=reason.rule.value if reason else "",
        estimates=estimates_of(spec, node.capacity),
    )


def _stranded(pools: tuple[PoolUse, ...], taken: CpuSet, machine: Machine) -> CpuSet:
    if any(pool.kind == "idle" for pool in pools):
        taken = CpuSet.union(p.cpus for p in pools if p.kind == "balloon")
    broken = (core.cpus for core in machine.cores if core.cpus & taken)
    return grantable(pools) & CpuSet.union(broken)


def _spread(placements: tuple[PlacedContainer, ...], machine: Machine) -> Spread:
    def apart(parts: Sequence[CpuSet]) -> tuple[str, ...]:
        return tuple(
            one.title
            for one in placements
            if sum(1 for part in parts if part & one.cpus) > 1
        )

    return Spread(
        sockets=apart([one.cpus for one in machine.packages]),
        nodes=apart(machine.node_cpus),
        l3=apart([one.cpus for one in machine.caches_at(_L3)]),
    )


def _largest(
    policy: ViewedPolicy[KnowsContainers], state: KnowsContainers, machine: Machine
) -> Largest:
    """Find the largest requests that the policy grants, from the largest down."""
    parts = {
        "anywhere": (machine.online,),
        "in_socket": tuple(one.cpus for one in machine.packages),
        "in_node": machine.node_cpus,
        "in_l3": tuple(one.cpus for one in machine.caches_at(_L3)),
    }
    found = {name: 0 for name, places in parts.items() if not places}
    for count, cpus in _tries(policy, state, machine):
        for name, places in parts.items():
            if name not in found and any(cpus <= place for place in places):
                found[name] = count
        if len(found) == len(parts):
            break
    return Largest(**found)


def _tries(
    policy: ViewedPolicy[KnowsContainers], state: KnowsContainers, machine: Machine
) -> Iterator[tuple[int, CpuSet]]:
    # A request for more than all grantable CPUs would be refused anyway.
    pools = policy.pools(state)
    most = len(grantable(pools) if pools else machine.online)
    for count in range(most, 0, -1):
        asked = MilliCpus(count * _CPU)
        spec = ContainerSpec(
            id=_PROBE,
            pod=_PROBE,
            title=_PROBE,
            namespace="default",
            qos=QosClass.GUARANTEED,
            request=asked,
            limit=asked,
            name=_PROBE,
            pod_name=_PROBE,
        )
        try:
            # Others may follow, of containers that had fallen back.
            reason = policy.decide(state, Created(spec)).reasons[0]
        except PolicyError:
            continue
        if reason.rule is not Rule.FELL_BACK and len(reason.cpus) >= count:
            yield count, reason.cpus & machine.online
