"""How well pools match hints, in fractions and straight from the reference."""

from __future__ import annotations

from fractions import Fraction

from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import CpuSet


def near(hint: Hint, view: NodeView) -> CpuSet:
    machine = view.tree.machine
    if hint.cpus:
        return hint.cpus & machine.online
    if hint.nodes:
        return machine.cpus_of(hint.nodes)
    cpus = [one.cpus for one in machine.packages if one.id in hint.packages]
    return CpuSet.union(cpus)


BY_NODE = {"numa": "1", "l3cache": "0.9", "die": "0.9", "package": "0.9"}


def score(hint: Hint, pool: Pool, view: NodeView) -> Fraction:
    machine = view.tree.machine
    if hint.cpus:
        return Fraction(len(hint.cpus & pool.cpus), len(hint.cpus))
    own = machine.nodes_of(pool.cpus)
    if hint.nodes:
        own = own | pool.nodes - machine.cpu_nodes
        worth = Fraction(BY_NODE.get(pool.level, "0.81"))
        return worth if own & hint.nodes else Fraction(0)
    if not near(hint, view) & pool.cpus:
        return Fraction(0)
    if pool.level is TreeLevel.SYSTEM:
        return Fraction(9, 10)
    if pool.level is TreeLevel.L3:
        return Fraction(9, 10) * score(hint, view.tree.pools[pool.path[1]], view)
    package = machine.package_of(pool.cpus.first)
    parts = {
        TreeLevel.PACKAGE: 1,
        TreeLevel.DIE: len(own),
        TreeLevel.NUMA: len(machine.nodes_of(package.cpus)),
    }
    return Fraction(1, parts[pool.level])
