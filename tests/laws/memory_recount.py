"""What must hold of promises of memory, counted from scratch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.mems.accounts import Accounts
from nri_resmgr.topology import Machine
from nri_resmgr.values import Bytes, NodeSet


def check_memory(machine: Machine, memory: MemoryLedger) -> None:
    """No node is promised twice, and the sums that are carried on are right."""
    grants = memory.grants.values()
    nodes = tuple(machine.memory_nodes)
    for count in range(1, len(nodes) + 1):
        for some in combinations(nodes, count):
            inside = NodeSet.from_iterable(some)
            within = [one.request for one in grants if one.zone <= inside]
            assert sum(one.size for one in within) <= _ordinary(inside, machine)
            pages = (pool for one in within for pool in one.hugepages)
            assert sum(p.size * p.count for p in pages) <= _set_aside(inside, machine)
    for grant in grants:
        assert grant.zone
        assert grant.zone <= machine.memory_nodes
        assert grant.zone & machine.normal_nodes
    again = Accounts(memory.layout, grants)
    assert content_of(memory.accounts) == content_of(again)


def _ordinary(nodes: NodeSet, machine: Machine) -> int:
    return sum(machine.node(one).memory for one in nodes) - _set_aside(nodes, machine)


def _set_aside(nodes: NodeSet, machine: Machine) -> int:
    pools = (pool for one in nodes for pool in machine.node(one).hugepages)
    return sum(pool.size * pool.count for pool in pools)


def content_of(accounts: Accounts) -> Mapping[str, object]:
    def without_empty(table: Mapping[Bytes, Mapping[int, Any]]) -> Iterator[Any]:
        return ((page, dict(zones)) for page, zones in table.items() if zones)

    return {
        "sums": dict(without_empty(accounts.sums)),
        "rows": dict(without_empty(accounts.rows)),
    }
