"""States of the topology-aware policy as records, and back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import Grant as MemoryGrant
from nri_resmgr.policy.records import (
    LEDGER_TABLES,
    BadRecord,
    Dropped,
    Restored,
    Tables,
    check_ids,
    check_keys,
    ledger_from,
    ledger_tables,
    memory_from,
)
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.pool_ledger import Books, Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.state import Slot, TopologyAwareState

TABLES: Final[Mapping[str, Any]] = {
    **LEDGER_TABLES,
    "pool": str,
    "grant": Grant,
    "memory": MemoryGrant,
    "vacated": Grant,
    "held": ContainerSpec,
    "node": bool,
}

KEYS: Final[Mapping[str, type]] = {"pool": int, "vacated": tuple, "held": tuple}


def tables_of(state: TopologyAwareState) -> Tables:
    """Return what a state consists of, with the names of the pools in it."""
    return {
        "pool": {pool.id: pool.name for pool in state.books.tree.pools},
        **ledger_tables(state.ledger),
        "grant": state.grants,
        "memory": state.memory.grants,
        "vacated": state.vacated,
        "held": state.held,
        "node": {"unsettled": state.unsettled},
    }


def state_from(
    tables: Tables, policy: TopologyAwarePolicy
) -> Restored[TopologyAwareState]:
    """Make a state in the pools of *policy* of the same names.

    Raises:
        BadRecord: The tables are of no state.
    """
    held: Mapping[Slot, ContainerSpec] = tables["held"]
    _check(tables, held)
    start = policy.start()
    memory, dropped = memory_from(tables["memory"], start.memory.layout)
    grants = _grants_from(tables["grant"], tables["pool"], policy.tree, dropped)
    vacated = _grants_from(tables["vacated"], tables["pool"], policy.tree, {})
    waiting = {slot: one for slot, one in held.items() if one.id not in dropped}
    state = TopologyAwareState(
        ledger=ledger_from(tables, dropped),
        grants=MappingProxyType(grants),
        books=Books.of(policy.tree, grants.values()),
        memory=memory.release(*dropped),
        vacated=MappingProxyType(vacated),
        held=MappingProxyType(waiting),
        unsettled=tables["node"].get("unsettled", True),
    )
    return Restored(state, dropped)


def _grants_from(
    rows: Mapping[Any, Grant],
    names: Mapping[int, str],
    tree: PoolTree,
    dropped: Dropped,
) -> dict[Any, Grant]:
    """Return the grants in pools that there are; note who had others."""
    found = {}
    for key, grant in rows.items():
        if (name := names.get(grant.pool)) is None:
            raise BadRecord(f"grant {key}", f"pool {grant.pool} has no name")
        if (pool := tree.named(name)) is None:
            dropped.setdefault(key, f"there is no pool {name}")
        elif key not in dropped:
            found[key] = msgspec.structs.replace(grant, pool=pool.id)
    return found


def _check(tables: Tables, held: Mapping[Slot, ContainerSpec]) -> None:
    ids = {one.id: one for one in held.values()}
    for slot, spec in held.items():
        if slot != (spec.pod, spec.name):
            raise BadRecord(f"held {slot}", f"tells of {spec.pod}/{spec.name}")
    everybody = {**tables["container"], **ids}
    for name in ("grant", "memory"):
        check_keys(name, tables[name], everybody)
    check_ids("grant", {key: one.container for key, one in tables["grant"].items()})
