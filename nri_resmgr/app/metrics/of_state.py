"""Metrics of pools, memory and containers, computed from the present state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series
from nri_resmgr.app.observers.policy_in_force import (
    PolicyInForce,
    PolicySnapshot,
    snapshot_of,
)
from nri_resmgr.host.machine.nodes import used_memory
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import NO_PIN
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet

_CPU: Final = 1000  # thousandths
_ZONES: Final = ("system", "package", "die", "numa", "l3cache")


def series_of_state(
    subject: PolicyInForce, tree: Tree, *, per_container: bool
) -> Iterator[Series]:
    """Yield the metrics of pools, memory and containers, named if *per_container*."""
    now = snapshot_of(subject)
    yield Series(table.POLICY, {(subject.policy.kind,): 1})
    yield from _of_pools(now.pools)
    yield _containers(now)
    sources = Counter((spec.source.value,) for spec in now.specs.values())
    yield Series(table.SOURCE_CONTAINERS, sources)
    yield from _of_memory(now)
    if per_container:
        yield from _of_containers(now)
    yield from _of_nri_plugins(now, tree, per_container=per_container)


def _of_pools(pools: Sequence[PoolUse]) -> Iterator[Series]:
    rows = [((pool.name, pool.kind), pool) for pool in pools]
    yield Series(table.POOL_CAPACITY, {key: p.capacity / _CPU for key, p in rows})
    yield Series(table.POOL_GRANTED, {key: p.granted / _CPU for key, p in rows})
    yield Series(table.POOL_FREE, {key: p.free / _CPU for key, p in rows})
    yield Series(table.POOL_EXCLUSIVE, {key: len(p.exclusive) for key, p in rows})
    yield Series(table.POOL_CONTAINERS, {key: len(p.containers) for key, p in rows})


def _containers(now: PolicySnapshot) -> Series:
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


def _of_memory(now: PolicySnapshot) -> Iterator[Series]:
    rows = [((str(one.id), one.kind.value), one) for one in now.machine.nodes]
    yield Series(table.NODE_CAPACITY, {key: int(one.memory) for key, one in rows})
    if (ledger := now.memory) is not None:
        granted = {key: int(ledger.usage(NodeSet.of(one.id))) for key, one in rows}
        yield Series(table.NODE_GRANTED, granted)


def _of_containers(now: PolicySnapshot) -> Iterator[Series]:
    # A container may be created before its predecessor of the same name is removed:
    # the labels must be unique, so the last one is shown.
    named = {(s.namespace, s.pod_name, s.name): key for key, s in now.specs.items()}
    yield Series(
        table.CONTAINER,
        {
            (
                *(*name, now.specs[key].qos.value, now.pool_of.get(key, "")),
                *(str(pin.cpus), str(pin.mems)),
            ): 1
            for name, key in named.items()
            for pin in (now.pins.get(key, NO_PIN),)
        },
    )
    requests = {name: now.specs[key].request / _CPU for name, key in named.items()}
    yield Series(table.CONTAINER_REQUEST, requests)


def _of_nri_plugins(
    now: PolicySnapshot, tree: Tree, *, per_container: bool
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


def _of_nodes(now: PolicySnapshot, tree: Tree) -> Iterator[Series]:
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


def _of_cpus(now: PolicySnapshot) -> Iterator[Series]:
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


def _of_zones(pools: Sequence[PoolUse], now: PolicySnapshot) -> Iterator[Series]:
    wide = {(p.name, str(p.cpus), str(p.mems)): len(p.cpus) for p in pools}
    yield Series(table.NP_ZONE_CPUS, wide)
    names = [((pool.name,), pool) for pool in pools]
    assigned = {k: (p.granted - _CPU * len(p.exclusive)) / _CPU for k, p in names}
    yield Series(table.NP_ZONE_SHARED, {key: len(p.shared) for key, p in names})
    yield Series(table.NP_ZONE_ASSIGNED, assigned)
    yield Series(table.NP_ZONE_AVAILABLE, {key: p.free / _CPU for key, p in names})
    rows = [((pool.name, str(pool.mems)), pool) for pool in pools]
    granted = {key: int(p.memory_granted) for key, p in rows}
    free = {key: int(p.memory - p.memory_granted) for key, p in rows}
    yield Series(table.NP_ZONE_MEMORY, {key: int(p.memory) for key, p in rows})
    yield Series(table.NP_ZONE_MEMORY_ASSIGNED, granted)
    yield Series(table.NP_ZONE_MEMORY_AVAILABLE, free)
    sharing = {key: _sharing(p.containers, now) for key, p in names}
    yield Series(table.NP_ZONE_CONTAINERS, {k: len(p.containers) for k, p in names})
    yield Series(table.NP_ZONE_SHARING, sharing)


def _sharing(containers: Iterable[str], now: PolicySnapshot) -> int:
    pins = (now.pins.get(one, NO_PIN) for one in containers)
    return sum(1 for pin in pins if not pin.cpus & now.exclusive)


def _balloon(
    pool: PoolUse, now: PolicySnapshot, *, per_container: bool
) -> tuple[str, ...]:
    labels: Mapping[str, str] = pool.labels
    allowed = pool.cpus | pool.idle
    specs = [now.specs[one] for one in pool.containers]
    names = (f"{one.pod_name}/{one.name}" for one in specs) if per_container else ()
    return (
        labels["type"],
        labels["cpu_class"],
        labels["min_cpus"],
        labels["max_cpus"],
        pool.name,
        labels["groups"],
        *(str(pool.cpus), str(len(pool.cpus))),
        *(
            text
            for level in _places(pool.cpus, now.machine)
            for text in _counted(level)
        ),
        *(str(pool.idle), str(len(pool.idle))),
        *(str(allowed), str(len(allowed))),
        ",".join(map(str, pool.mems)),
        ",".join(sorted(names)),
        str(sum(one.request for one in specs)),
    )


def _places(cpus: CpuSet, machine: Machine) -> tuple[list[str], ...]:
    """Return the NUMA nodes, dies and packages of CPUs, as nri-plugins names them."""
    dies = [one for one in machine.dies if one.cpus & cpus]
    return (
        [
            f"p{die.package}d{die.id}n{node.id}"
            for die in dies
            for node in machine.nodes
            if node.cpus & die.cpus & cpus
        ],
        [f"p{die.package}d{die.id}" for die in dies],
        [f"p{one.id}" for one in machine.packages if one.cpus & cpus],
    )


def _counted(names: Sequence[str]) -> tuple[str, str]:
    return ",".join(names), str(len(names))
