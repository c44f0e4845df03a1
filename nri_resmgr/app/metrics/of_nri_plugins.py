"""The metrics of nri-plugins, under the names that its dashboards look for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from nri_resmgr.app.metrics import table_of_nri_plugins as table
from nri_resmgr.app.metrics.text import Series
from nri_resmgr.host.tree import Tree
from nri_resmgr.host.used_memory import used_memory
from nri_resmgr.policy.events import NO_PIN
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import CpuSet

_CPU: Final = 1000  # thousandths
_ZONES: Final = ("system", "package", "die", "numa", "l3cache")


def series_of_nri_plugins(
    view: Any, tree: Tree, *, per_container: bool
) -> Iterator[Series]:
    """Yield what nri-plugins has on nodes, CPUs, and pools or balloons.

    Args:
        view: The state; see `nri_resmgr.app.metrics.of_state.View`.
        tree: The host.
        per_container: Whether to name containers.

    Source:
        nri-plugins, pkg/resmgr/policy/metrics.go and the policies' metrics.go.
    """
    yield from _of_nodes(view, tree)
    yield from _of_cpus(view)
    yield from _of_zones([one for one in view.pools if one.kind in _ZONES], view)
    balloons = [one for one in view.pools if one.kind == "balloon"]
    rows = {_balloon(one, view, per_container=per_container): one for one in balloons}
    yield Series(table.NP_BALLOON, {key: len(one.cpus) for key, one in rows.items()})


def _of_nodes(view: Any, tree: Tree) -> Iterator[Series]:
    rows = {(str(one.id), one.kind.value.upper()): one for one in view.machine.nodes}
    ids = [one.id for one in view.machine.nodes]
    zones = Counter(pin.mems for pin in view.pins.values())
    counts = {one: sum(n for z, n in zones.items() if one in z) for one in ids}
    yield Series(
        table.NP_NODE_CAPACITY, {k: int(one.memory) for k, one in rows.items()}
    )
    used = {key: used_memory(tree, node.id) for key, node in rows.items()}
    told = {key: used for key, used in used.items() if used is not None}
    yield Series(table.NP_NODE_USAGE, told)
    yield Series(table.NP_NODE_CONTAINERS, {k: counts[n.id] for k, n in rows.items()})


def _of_cpus(view: Any) -> Iterator[Series]:
    # Most containers share a set with others: there are few sets, and many CPUs.
    shares: dict[CpuSet, tuple[int, int]] = {}
    for key, spec in view.specs.items():
        cpus = view.pins.get(key, NO_PIN).cpus
        sharing, request = shares.get(cpus, (0, 0))
        share = spec.request // len(cpus) if cpus else 0
        shares[cpus] = sharing + 1, request + share
    asked, counts = Counter[int](), Counter[int]()
    for cpus, (sharing, request) in shares.items():
        counts.update(dict.fromkeys(cpus, sharing))
        asked.update(dict.fromkeys(cpus, request))
    online = [(str(cpu), cpu) for cpu in view.machine.online]
    yield Series(table.NP_CPU_ALLOCATION, {(key,): asked[cpu] for key, cpu in online})
    yield Series(table.NP_CPU_CONTAINERS, {(key,): counts[cpu] for key, cpu in online})


def _of_zones(pools: Sequence[PoolUse], view: Any) -> Iterator[Series]:
    own = [(pool, _CPU * len(pool.exclusive)) for pool in pools]
    wide = {(p.name, str(p.cpus), str(p.mems)): len(p.cpus) for p in pools}
    yield Series(table.NP_ZONE_CPUS, wide)
    shared = {(pool.name,): len(pool.shared) for pool in pools}
    yield Series(table.NP_ZONE_SHARED, shared)
    assigned = {(pool.name,): (pool.granted - cpus) / _CPU for pool, cpus in own}
    yield Series(table.NP_ZONE_ASSIGNED, assigned)
    available = {(pool.name,): pool.free / _CPU for pool in pools}
    yield Series(table.NP_ZONE_AVAILABLE, available)
    rows = [((pool.name, str(pool.mems)), pool) for pool in pools]
    yield Series(table.NP_ZONE_MEMORY, {key: int(p.memory) for key, p in rows})
    granted = {key: int(p.memory_granted) for key, p in rows}
    yield Series(table.NP_ZONE_MEMORY_ASSIGNED, granted)
    left = {key: int(p.memory - p.memory_granted) for key, p in rows}
    yield Series(table.NP_ZONE_MEMORY_AVAILABLE, left)
    present = {(pool.name,): len(pool.containers) for pool in pools}
    yield Series(table.NP_ZONE_CONTAINERS, present)
    sharing = {(pool.name,): _sharing(pool.containers, view) for pool in pools}
    yield Series(table.NP_ZONE_SHARING, sharing)


def _sharing(containers: Iterable[str], view: Any) -> int:
    pins = (view.pins.get(one, NO_PIN) for one in containers)
    return sum(1 for pin in pins if not pin.cpus & view.exclusive)


def _balloon(pool: PoolUse, view: Any, *, per_container: bool) -> tuple[str, ...]:
    labels: Mapping[str, str] = pool.labels
    allowed = pool.cpus | pool.idle
    names = (view.specs[one].title for one in pool.containers) if per_container else ()
    limit = labels["max_cpus"]
    return (
        labels["type"],
        labels["cpu_class"],
        labels["min_cpus"],
        limit if limit != "0" else "",
        pool.name,
        labels["groups"],
        *(str(pool.cpus), str(len(pool.cpus))),
        *_counted(labels["nodes"], len(view.machine.nodes_of(pool.cpus))),
        *_counted(labels["dies"]),
        *_counted(labels["packages"]),
        *(str(pool.idle), str(len(pool.idle))),
        *(str(allowed), str(len(allowed))),
        str(pool.mems),
        ",".join(sorted(names)),
        str(sum(view.specs[one].request for one in pool.containers)),
    )


def _counted(text: str, count: int | None = None) -> tuple[str, str]:
    if count is None:
        count = len(text.split(",")) if text else 0
    return text, str(count)
