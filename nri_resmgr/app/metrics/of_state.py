"""Metrics of what the node has and who has it, looked up when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.of_nri_plugins import series_of_nri_plugins
from nri_resmgr.app.metrics.text import Series
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet

_CPU = 1000  # thousandths


class Subject(Protocol):
    """What metrics are of; a `ResourcePolicy` is one."""

    @property
    def machine(self) -> Machine:
        """The machine in force."""

    @property
    def policy(self) -> ViewedPolicy[Any]:
        """The policy in force."""

    @property
    def state(self) -> Any:
        """What it knows and has granted."""


class View(msgspec.Struct, frozen=True):
    """The policy's state at one moment.

    Attributes:
        machine: What there is.
        policy: The kind of the policy.
        state: Its state.
        specs: The containers, by id.
        pins: What should hold for them.
        pools: The pools.
        exclusive: CPUs that one container each has to itself.
    """

    machine: Machine
    policy: str
    state: Any
    specs: Mapping[str, ContainerSpec]
    pins: Mapping[str, Pin]
    pools: Sequence[PoolUse]
    exclusive: CpuSet


def series_of_state(
    subject: Subject, tree: Tree, *, per_container: bool
) -> Iterator[Series]:
    """Yield what `metric_table` has on pools, memory and containers.

    Args:
        subject: Whose state it is.
        tree: The host, whose kernel says what memory is in use.
        per_container: Whether to name pods and containers.
    """
    view = _view_of(subject)
    yield Series(table.POLICY, {(view.policy,): 1})
    yield from _of_pools(view.pools)
    yield _containers(view)
    yield from _of_memory(view)
    if per_container:
        yield from _of_containers(view)
    yield from series_of_nri_plugins(view, tree, per_container=per_container)


def _view_of(subject: Subject) -> View:
    policy, state = subject.policy, subject.state
    pools = policy.pools(state)
    return View(
        machine=subject.machine,
        policy=policy.kind,
        state=state,
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


def _containers(view: View) -> Series:
    reserved = CpuSet.union(pool.reserved for pool in view.pools)
    sets = Counter(
        (view.pins.get(key, NO_PIN).cpus, spec.qos.value)
        for key, spec in view.specs.items()
    )
    counts = Counter[tuple[str, str]]()
    for (cpus, qos), count in sets.items():
        counts[_runs_on(cpus, view.exclusive, reserved), qos] += count
    return Series(table.CONTAINERS, counts)


def _runs_on(cpus: CpuSet, exclusive: CpuSet, reserved: CpuSet) -> str:
    if not cpus:
        return "unpinned"
    if not cpus & exclusive:
        return "shared" if cpus - reserved else "reserved"
    return "mixed" if cpus - exclusive else "exclusive"


def _of_memory(view: View) -> Iterator[Series]:
    rows = [((str(one.id), one.kind.value), one) for one in view.machine.nodes]
    yield Series(table.NODE_CAPACITY, {key: int(one.memory) for key, one in rows})
    ledger = getattr(view.state, "memory", None)  # not every policy counts memory
    if isinstance(ledger, MemoryLedger):
        granted = {key: int(ledger.usage(NodeSet.of(one.id))) for key, one in rows}
        yield Series(table.NODE_GRANTED, granted)


def _of_containers(view: View) -> Iterator[Series]:
    pool_of = {one: pool.name for pool in view.pools for one in pool.containers}
    # A name comes again while its last bearer is not gone: ids tell them apart.
    named = {(s.namespace, s.pod_name, s.name): key for key, s in view.specs.items()}
    yield Series(
        table.CONTAINER,
        {
            (*name, view.specs[key].qos.value, pool_of.get(key, ""), *_places(pin)): 1
            for name, key in named.items()
            for pin in (view.pins.get(key, NO_PIN),)
        },
    )
    requests = {name: view.specs[key].request / _CPU for name, key in named.items()}
    yield Series(table.CONTAINER_REQUEST, requests)


def _places(pin: Pin) -> tuple[str, str]:
    return str(pin.cpus), str(pin.mems)
