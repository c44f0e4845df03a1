"""Scores of pools by topology hints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import lcm, prod
from typing import Final

import msgspec

from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import CpuSet

# Score of a pool with a hint's node, in hundredths, by its level: larger pools also
# have CPUs that are far from the node.
_BY_NODE: Final = {
    TreeLevel.NUMA: 100,
    TreeLevel.L3: 90,
    TreeLevel.DIE: 90,
    TreeLevel.PACKAGE: 90,
    TreeLevel.SYSTEM: 81,
}
_WHOLE: Final = 100


class HintScore(msgspec.Struct, frozen=True):
    """The score of one pool over all hints; only the order of scores has a meaning.

    Attributes:
        all_hints: The product over all hints; 0 if any is not matched.
        matched: The product over the matched hints; 0 if none is.
    """

    all_hints: int
    matched: int


def hint_score(hints: Sequence[Hint], pool: Pool, tree: PoolTree) -> HintScore:
    """Score a pool by one or more hints.

    The first of CPUs, nodes and packages that a hint has counts. Scores are integers
    so that equal ones compare equal: a full match is a common multiple of all parts.

    Source:
        nri-plugins, topology-aware, ``hint.go``.
    """
    scores = [_score(hint, pool, tree) for hint in hints]
    if not any(scores):
        return HintScore(0, 0)
    full = (
        score or _full_score(hint, tree)
        for score, hint in zip(scores, hints, strict=True)
    )
    return HintScore(prod(scores), prod(full))


def cpus_near(hint: Hint, machine: Machine) -> CpuSet:
    """Return the online CPUs of a hint; none if it has memory nodes only."""
    if hint.cpus:
        return hint.cpus & machine.online
    if hint.nodes:
        return machine.cpus_of(hint.nodes)
    packages = (one for one in machine.packages if one.id in hint.packages)
    return CpuSet.union(one.cpus for one in packages)


def cpus_near_all(hints: Sequence[Hint], machine: Machine) -> CpuSet:
    """Return the online CPUs that are inside of every hint.

    Hints with memory only do not restrict CPUs.
    """
    inside = machine.online
    for hint in hints:
        if near := cpus_near(hint, machine):
            inside &= near
    return inside


def _full_score(hint: Hint, tree: PoolTree) -> int:
    if hint.cpus:
        return len(hint.cpus)
    return _WHOLE if hint.nodes else _whole_package(tree)


def _score(hint: Hint, pool: Pool, tree: PoolTree) -> int:
    machine = tree.machine
    if hint.cpus:
        return len(hint.cpus & pool.cpus)
    if hint.nodes:
        local = machine.nodes_of(pool.cpus) | pool.nodes - machine.cpu_nodes
        return _BY_NODE[pool.level] if hint.nodes & local else 0
    if pool.cpus.isdisjoint(cpus_near(hint, machine)):
        return 0
    return _score_in_package(pool, tree)


def _score_in_package(pool: Pool, tree: PoolTree) -> int:
    """Score a pool that has CPUs of a hint's package."""
    whole, machine = _whole_package(tree), tree.machine
    match pool.level:
        case TreeLevel.SYSTEM:
            return whole * 9 // 10
        case TreeLevel.PACKAGE:
            return whole
        case TreeLevel.DIE:
            return whole // len(machine.nodes_of(pool.cpus))
        case TreeLevel.NUMA:
            package = machine.package_of(pool.cpus.first)
            return whole // len(machine.nodes_of(package.cpus))
        case TreeLevel.L3:
            above = tree.pools[pool.path[1]]
            return _score_in_package(above, tree) * 9 // 10


@lru_cache(maxsize=8)
def _whole_package(tree: PoolTree) -> int:
    """Return ten times a number that all parts divide, for integral nine tenths."""
    machine = tree.machine
    parts = [*(one.cpus for one in machine.packages)]
    parts += [one.cpus for one in machine.dies]
    return 10 * lcm(*(len(machine.nodes_of(cpus)) for cpus in parts))
