"""What must hold of promises of memory, counted from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nri_resmgr.policy.mems import MemoryGrant, MemoryLedger
from nri_resmgr.policy.mems.accounts import Accounts
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_NODES, NodeSet


def check_memory(machine: Machine, memory: MemoryLedger) -> None:
    """No node is promised twice, and the sums that are carried on are right."""
    grants = memory.grants.values()
    # All sets of nodes matter, but what is promised within any other one is promised
    # within one of these, which has less.
    unions = {NO_NODES}
    for zone in {one.zone for one in grants}:
        unions |= {one | zone for one in unions}
    for inside in unions:
        within = [one.request for one in grants if one.zone <= inside]
        assert sum(one.size for one in within) <= _ordinary(inside, machine)
        pages = (pool for one in within for pool in one.hugepages)
        assert sum(p.size * p.count for p in pages) <= _set_aside(inside, machine)
    for grant in grants:
        assert grant.zone
        assert grant.zone <= machine.memory_nodes
        assert grant.zone & machine.normal_nodes
    again = Accounts(memory.layout, grants)
    assert content_of(memory.accounts, grants) == content_of(again, grants)


def _ordinary(nodes: NodeSet, machine: Machine) -> int:
    return sum(machine.node(one).memory for one in nodes) - _set_aside(nodes, machine)


def _set_aside(nodes: NodeSet, machine: Machine) -> int:
    pools = (pool for one in nodes for pool in machine.node(one).hugepages)
    return sum(pool.size * pool.count for pool in pools)


def content_of(
    accounts: Accounts, grants: Iterable[MemoryGrant]
) -> Mapping[str, object]:
    sums = {page: dict(zones) for page, zones in accounts.sums.items() if zones}
    known = accounts.copy()
    known.index_rows(grants)  # if no grant has been widened so far
    return {
        "sums": sums,
        "rows": {page: known.rows(page) for page in sums},
        "reaches": {page: known.reaches(page) for page in sums},
    }
