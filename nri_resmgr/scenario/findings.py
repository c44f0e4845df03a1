"""What came of a scenario: who is where, what is left, what lies apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.events import ContainerSpec, Created, Pin
from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.scenario.node import InProcessNode, Refusal
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
_NOBODY: Final = "one-more"


class Placement(msgspec.Struct, frozen=True):
    """One container and where it is.

    Attributes:
        id: Of the container.
        title: ``namespace/pod/container``.
        qos: Of its pod.
        request: CPUs that it asks for.
        memory: That it asks for.
        cpus: Where it may run; empty for anywhere.
        own: Those of them that nobody else may run on.
        mems: Its memory nodes; empty for any.
        pool: That it was granted from.
        rule: Why it is there.
    """

    id: str
    title: str
    qos: QosClass
    request: MilliCpus
    memory: Bytes
    cpus: CpuSet
    own: CpuSet
    mems: NodeSet
    pool: str
    rule: str


class Largest(msgspec.Struct, frozen=True):
    """The most whole CPUs that one more Guaranteed container would be granted.

    Attributes:
        anywhere: Wherever they are.
        in_socket: All of them in one socket.
        in_node: All of them in one NUMA node.
        in_l3: All of them behind one level 3 cache; 0 where there is none.
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
        machine: As it is at the end.
        kind: Of the policy.
        placements: In order of arrival.
        refusals: In order.
        pools: What each has and what is granted of it.
        largest: What one more could get.
        stranded: CPUs that could be granted, but whose core has somebody's own CPU.
        spread: Of containers with CPUs of their own.
        shared_spread: Of the others.
    """

    machine: Machine
    kind: str
    placements: tuple[Placement, ...]
    refusals: tuple[Refusal, ...]
    pools: tuple[PoolUse, ...]
    largest: Largest
    stranded: CpuSet
    spread: Spread
    shared_spread: Spread


def findings_of(node: InProcessNode) -> Findings:
    """Look at a node as it is now."""
    plugin = node.plugin
    policy, machine, state = plugin.policy, plugin.machine, plugin.state
    pools, pins = policy.pools(state), policy.pins(state)
    taken = CpuSet.union(pool.exclusive for pool in pools)
    placements = tuple(
        _placement(entry.spec, pins[key], taken, node)
        for key, entry in state.ledger.entries.items()
    )
    own = tuple(one for one in placements if one.own)
    shared = tuple(one for one in placements if not one.own)
    return Findings(
        machine=machine,
        kind=policy.kind,
        placements=placements,
        refusals=tuple(node.book.refusals),
        pools=pools,
        largest=_largest(policy, state, machine),
        stranded=_stranded(pools, taken, machine),
        spread=_spread(own, machine),
        shared_spread=_spread(shared, machine),
    )


def grantable(pools: tuple[PoolUse, ...]) -> CpuSet:
    """Give the CPUs that could still be granted to one container alone."""
    idle = [pool for pool in pools if pool.kind == "idle"]
    return CpuSet.union(pool.shared | pool.isolated for pool in idle or pools)


def _placement(
    spec: ContainerSpec, pin: Pin, taken: CpuSet, node: InProcessNode
) -> Placement:
    reason = node.book.reasons.get(spec.id)
    return Placement(
        id=spec.id,
        title=spec.title,
        qos=spec.qos,
        request=spec.request,
        memory=spec.memory_request,
        cpus=pin.cpus,
        own=pin.cpus & taken,
        mems=pin.mems,
        pool=reason.pool if reason else "",
        rule=reason.rule.value if reason else "",
    )


def _stranded(pools: tuple[PoolUse, ...], taken: CpuSet, machine: Machine) -> CpuSet:
    if any(pool.kind == "idle" for pool in pools):
        taken = CpuSet.union(p.cpus for p in pools if p.kind == "balloon")
    broken = (core.cpus for core in machine.cores if core.cpus & taken)
    return grantable(pools) & CpuSet.union(broken)


def _spread(placements: tuple[Placement, ...], machine: Machine) -> Spread:
    def apart(parts: list[CpuSet]) -> tuple[str, ...]:
        return tuple(
            one.title
            for one in placements
            if sum(1 for part in parts if part & one.cpus) > 1
        )

    return Spread(
        sockets=apart([one.cpus for one in machine.packages]),
        nodes=apart([one.cpus for one in machine.nodes]),
        l3=apart([one.cpus for one in machine.caches_at(_L3)]),
    )


def _largest(policy: ViewedPolicy[Any], state: Any, machine: Machine) -> Largest:
    """Try, beginning with the most; nothing that is tried stays."""
    parts = {
        "anywhere": (machine.online,),
        "in_socket": tuple(one.cpus for one in machine.packages),
        "in_node": tuple(one.cpus for one in machine.nodes),
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
    policy: ViewedPolicy[Any], state: Any, machine: Machine
) -> Iterator[tuple[int, CpuSet]]:
    # More than all that could be granted would be refused anyway.
    pools = policy.pools(state)
    most = len(grantable(pools) if pools else machine.online)
    for count in range(most, 0, -1):
        asked = MilliCpus(count * _CPU)
        spec = ContainerSpec(
            id=_NOBODY,
            pod=_NOBODY,
            title=_NOBODY,
            namespace="default",
            qos=QosClass.GUARANTEED,
            request=asked,
            limit=asked,
            name=_NOBODY,
            pod_name=_NOBODY,
        )
        try:
            (reason,) = policy.decide(state, Created(spec)).reasons
        except PolicyError:
            continue
        if reason.rule is not Rule.FELL_BACK and len(reason.cpus) >= count:
            yield count, reason.cpus & machine.online
