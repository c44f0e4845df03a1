"""Metrics of pools, memory and containers, computed from the present state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series
from nri_resmgr.host.machine.nodes import used_memory
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet

_CPU: Final = 1000  # thousandths
_ZONES: Final = ("system", "package", "die", "numa", "l3cache")


class MeasuredPolicy(Protocol):
    """A policy with its state, as a `ResourcePolicy` has them."""

    @property
    def machine(self) -> Machine:
        """The present machine."""

    @property
    def policy(self) -> ViewedPolicy[KnowsContainers]:
        """The present policy."""

    @property
    def state(self) -> KnowsContainers:
        """Its state."""


class StateSnapshot(msgspec.Struct, frozen=True):
    """The policy's state at one moment.

    Attributes:
        machine: The machine.
        policy: The kind of the policy.
        memory: Its memory ledger; None where the policy has none.
        specs: The containers, by id.
        pins: Their decided CPUs, memory nodes and shares.
        pools: The pools.
        exclusive: Exclusive CPUs of all containers.
    """

    machine: Machine
    policy: str
    memory: MemoryLedger | None
    specs: Mapping[str, ContainerSpec]
    pins: Mapping[str, Pin]
    pools: Sequence[PoolUse]
    exclusive: CpuSet


def series_of_state(
    measured: MeasuredPolicy, tree: Tree, *, per_container: bool
) -> Iterator[Series]:
    """Yield the metrics of pools, memory and containers.

    Args:
        measured: The policy with its state.
        tree: The host, for the memory in use.
        per_container: Whether to name pods and containers.
    """
    now = _snapshot(measured)
    yield Series(table.POLICY, {(now.policy,): 1})
    yield from _of_pools(now.pools)
    yield _containers(now)
    yield from _of_memory(now)
    if per_container:
        yield from _of_containers(now)
    yield from _of_nri_plugins(now, tree, per_container=per_container)


def _snapshot(measured: MeasuredPolicy) -> StateSnapshot:
    policy, state = measured.policy, measured.state
    pools = policy.pools(state)
    memory = getattr(state, "memory", None)  # not every policy accounts for memory
    return StateSnapshot(
        machine=measured.machine,
        policy=policy.kind,
        memory=memory if isinstance(memory, MemoryLedger) else None,
        specs={key: entry.spec for key, entry in state.ledger.entries.items()},
        pins=policy.pins(state),
        pools=pools,
        exclusive=CpuSet.union(pool.exclusive for pool in pools),
    )


def _of_pools(pools: Sequence[PoolUse]) -> Iterator[Series]:
    rows = [((pool.name, pool.kind), pool) for pool in pools]
    yield Series(table.POOL_CAPACITY, {key: p.capacity / _CPU for key, p in rows})
    yield Series(table.POOL_GRANTED, {key: p.granted / _CPU for key, p in rows})
    yield Series(table.POOL_FREE, {key: p.free / _CPU for key, p in rows})
    yield Series(table.POOL_EXCLUSIVE, {key: len(p.exclusive) for key, p in rows})
    yield Series(table.POOL_CONTAINERS, {key: len(p.containers) for key, p in rows})


def _containers(now: StateSnapshot) -> Series:
    reserved = CpuSet.union(pool.reserved for pool in now.pools)
    # Counted per CPU set first: many containers share few sets.
    sets = Counter(
        (now.pins.get(key, NO_PIN).cpus, spec.qos.value)
        for key, spec in now.specs.items()
    )
    counts = Counter[tuple[str, str]]()
    for (cpus, qos), count in sets.items():
        counts[_runs_on(cpus, now.exclusive, reserved), qos] += count
    return Series(table.CONTAINERS, counts)


def _runs_on(cpus: CpuSet, exclusive: CpuSet, reserved: CpuSet) -> str:
    if not cpus:
        return "unpinned"
    if not cpus & exclusive:
        return "shared" if cpus - reserved else "reserved"
    return "mixed" if cpus - exclusive else "exclusive"


def _of_memory(now: StateSnapshot) -> Iterator[Series]:
    rows = [((str(one.id), one.kind.value), one) for one in now.machine.nodes]
    yield Series(table.NODE_CAPACITY, {key: int(one.memory) for key, one in rows})
    if (ledger := now.memory) is not None:
        granted = {key: int(ledger.usage(NodeSet.of(one.id))) for key, one in rows}
        yield Series(table.NODE_GRANTED, granted)


def _of_containers(now: StateSnapshot) -> Iterator[Series]:
    pool_of = {one: pool.name for pool in now.pools for one in pool.containers}
    # A container may be created before its predecessor of the same name is removed:
    # the labels must be unique, so the last one is shown.
    named = {(s.namespace, s.pod_name, s.name): key for key, s in now.specs.items()}
    yield Series(
        table.CONTAINER,
        {
            (
                *(*name, now.specs[key].qos.value, pool_of.get(key, "")),
                *(str(pin.cpus), str(pin.mems)),
            ): 1
            for name, key in named.items()
            for pin in (now.pins.get(key, NO_PIN),)
        },
    )
    requests = {name: now.specs[key].request / _CPU for name, key in named.items()}
    yield Series(table.CONTAINER_REQUEST, requests)


def _of_nri_plugins(
    now: StateSnapshot, tree: Tree, *, per_container: bool
) -> Iterator[Series]:
    """Yield nri-plugins' metrics of nodes, CPUs, and pools or balloons.

    Source:
        nri-plugins, pkg/resmgr/policy/metrics.go and the policies' metrics.go.
    """
    yield from _of_nodes(now, tree)
    yield from _of_cpus(now)
    yield from _of_zones([one for one in now.pools if one.kind in _ZONES], now)
    balloons = [one for one in now.pools if one.kind == "balloon"]
    rows = {_balloon(one, now, per_container=per_container): one for one in balloons}
    yield Series(table.NP_BALLOON, {key: len(one.cpus) for key, one in rows.items()})


def _of_nodes(now: StateSnapshot, tree: Tree) -> Iterator[Series]:
    rows = {(str(one.id), one.kind.value.upper()): one for one in now.machine.nodes}
    ids = [one.id for one in now.machine.nodes]
    zones = Counter(pin.mems for pin in now.pins.values())
    counts = {one: sum(n for z, n in zones.items() if one in z) for one in ids}
    yield Series(
        table.NP_NODE_CAPACITY, {k: int(one.memory) for k, one in rows.items()}
    )
    used = {key: used_memory(tree, node.id) for key, node in rows.items()}
    known = {key: used for key, used in used.items() if used is not None}
    yield Series(table.NP_NODE_USAGE, known)
    yield Series(table.NP_NODE_CONTAINERS, {k: counts[n.id] for k, n in rows.items()})


def _of_cpus(now: StateSnapshot) -> Iterator[Series]:
    # Computed per CPU set: there are few sets and many CPUs.
    shares: dict[CpuSet, tuple[int, int]] = {}
    for key, spec in now.specs.items():
        cpus = now.pins.get(key, NO_PIN).cpus
        sharing, request = shares.get(cpus, (0, 0))
        share = spec.request // len(cpus) if cpus else 0
        shares[cpus] = sharing + 1, request + share
    requested, counts = Counter[int](), Counter[int]()
    for cpus, (sharing, request) in shares.items():
        counts.update(dict.fromkeys(cpus, sharing))
        requested.update(dict.fromkeys(cpus, request))
    online = [(str(cpu), cpu) for cpu in now.machine.online]
    allocated = {(key,): requested[cpu] for key, cpu in online}
    yield Series(table.NP_CPU_ALLOCATION, allocated)
    yield Series(table.NP_CPU_CONTAINERS, {(key,): counts[cpu] for key, cpu in online})


def _of_zones(pools: Sequence[PoolUse], now: StateSnapshot) -> Iterator[Series]:
    exclusive = [(pool, _CPU * len(pool.exclusive)) for pool in pools]
    wide = {(p.name, str(p.cpus), str(p.mems)): len(p.cpus) for p in pools}
    yield Series(table.NP_ZONE_CPUS, wide)
    shared = {(pool.name,): len(pool.shared) for pool in pools}
    yield Series(table.NP_ZONE_SHARED, shared)
    assigned = {(pool.name,): (pool.granted - cpus) / _CPU for pool, cpus in exclusive}
    yield Series(table.NP_ZONE_ASSIGNED, assigned)
    available = {(pool.name,): pool.free / _CPU for pool in pools}
    yield Series(table.NP_ZONE_AVAILABLE, available)
    rows = [((pool.name, str(pool.mems)), pool) for pool in pools]
    yield Series(table.NP_ZONE_MEMORY, {key: int(p.memory) for key, p in rows})
    granted = {key: int(p.memory_granted) for key, p in rows}
    yield Series(table.NP_ZONE_MEMORY_ASSIGNED, granted)
    free = {key: int(p.memory - p.memory_granted) for key, p in rows}
    yield Series(table.NP_ZONE_MEMORY_AVAILABLE, free)
    present = {(pool.name,): len(pool.containers) for pool in pools}
    yield Series(table.NP_ZONE_CONTAINERS, present)
    sharing = {(pool.name,): _sharing(pool.containers, now) for pool in pools}
    yield Series(table.NP_ZONE_SHARING, sharing)


def _sharing(containers: Iterable[str], now: StateSnapshot) -> int:
    pins = (now.pins.get(one, NO_PIN) for one in containers)
    return sum(1 for pin in pins if not pin.cpus & now.exclusive)


def _balloon(
    pool: PoolUse, now: StateSnapshot, *, per_container: bool
) -> tuple[str, ...]:
    labels: Mapping[str, str] = pool.labels
    allowed = pool.cpus | pool.idle
    names = (now.specs[one].title for one in pool.containers) if per_container else ()
    limit = labels["max_cpus"]
    return (
        labels["type"],
        labels["cpu_class"],
        labels["min_cpus"],
        limit if limit != "0" else "",
        pool.name,
        labels["groups"],
        *(str(pool.cpus), str(len(pool.cpus))),
        *_counted(labels["nodes"], len(now.machine.nodes_of(pool.cpus))),
        *_counted(labels["dies"]),
        *_counted(labels["packages"]),
        *(str(pool.idle), str(len(pool.idle))),
        *(str(allowed), str(len(allowed))),
        str(pool.mems),
        ",".join(sorted(names)),
        str(sum(now.specs[one].request for one in pool.containers)),
    )


def _counted(text: str, count: int | None = None) -> tuple[str, str]:
    if count is None:
        count = len(text.split(",")) if text else 0
    return text, str(count)
