"""Checkpoint form of the topology-aware policy: states to tables, and back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec.structs import replace

from nri_resmgr.policy.claims import PreparedClaim
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import MemoryGrant
from nri_resmgr.policy.records import (
    LEDGER_TABLES,
    BadRecord,
    Restored,
    Tables,
    check_ids,
    check_keys,
    ledger_from,
    ledger_tables,
    memory_from,
)
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, PoolLedger
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.state import (
    Slot,
    TopologyAwareState,
    grant_of_claim,
)

# Of a container, or a slot.
KeyT = TypeVar("KeyT")

# A rename changes the format of checkpoints, see `nri_resmgr.policy.records`.
TABLES: Final[Mapping[str, type]] = {
    **LEDGER_TABLES,
    "pool": str,
    "grant": Grant,
    "memory": MemoryGrant,
    "former_place": Grant,
    "reserved_place": ContainerSpec,
    "announced": tuple[str, ...],
    "claim": PreparedClaim,
    "node": bool,
}

KEYS: Final[Mapping[str, type]] = {
    "pool": int,
    "former_place": tuple,
    "reserved_place": tuple,
}


def tables_of(state: TopologyAwareState) -> Tables:
    """Return the tables of a state, with the names of its pools."""
    return {
        "pool": {pool.id: pool.name for pool in state.pool_ledger.tree.pools},
        **ledger_tables(state.ledger),
        "grant": state.grants,
        "memory": state.memory.grants,
        "former_place": state.former_places,
        "reserved_place": state.reserved_places,
        "announced": state.announced,
        "claim": state.claims,
        "node": {"unsettled": state.unsettled},
    }


def state_from(
    tables: Tables, policy: TopologyAwarePolicy
) -> Restored[TopologyAwareState]:
    """Restore a state, with its pools replaced by those of *policy* with the same name.

    Raises:
        BadRecord: The tables are inconsistent.
    """
    reserved_places: Mapping[Slot, ContainerSpec] = tables["reserved_place"]
    _check(tables, reserved_places)
    start = policy.start()
    memory, dropped = memory_from(tables["memory"], start.memory.layout)
    grants = _grants_from(tables["grant"], tables["pool"], policy.tree, dropped)
    former_places = _grants_from(
        tables["former_place"], tables["pool"], policy.tree, {}
    )
    kept = {slot: one for slot, one in reserved_places.items() if one.id not in dropped}
    claims: Mapping[str, PreparedClaim] = tables["claim"]
    check_ids("claim", {key: one.claim.uid for key, one in claims.items()})
    of_claims = [grant_of_claim(one, policy.tree) for one in claims.values()]
    state = TopologyAwareState(
        ledger=ledger_from(tables, dropped),
        grants=MappingProxyType(grants),
        pool_ledger=PoolLedger.of(policy.tree, (*grants.values(), *of_claims)),
        memory=memory.release(*dropped),
        former_places=MappingProxyType(former_places),
        reserved_places=MappingProxyType(kept),
        claims=claims,
        announced=tables["announced"],
        unsettled=tables["node"].get("unsettled", True),
    )
    return Restored(state, dropped)


def _grants_from(
    rows: Mapping[KeyT, Grant],
    names: Mapping[int, str],
    tree: PoolTree,
    dropped: dict[KeyT, str],
) -> dict[KeyT, Grant]:
    """Return the grants in existing pools; add the others to *dropped*."""
    found = {}
    for key, grant in rows.items():
        if (name := names.get(grant.pool)) is None:
            raise BadRecord(f"grant {key}", f"pool {grant.pool} has no name")
        if (pool := tree.named(name)) is None:
            dropped.setdefault(key, f"there is no pool {name}")
        elif key not in dropped:
            found[key] = replace(grant, pool=pool.id)
    return found


def _check(tables: Tables, reserved_places: Mapping[Slot, ContainerSpec]) -> None:
    ids = {one.id: one for one in reserved_places.values()}
    for slot, spec in reserved_places.items():
        if slot != (spec.pod, spec.name):
            raise BadRecord(f"reserved_place {slot}", f"is of {spec.pod}/{spec.name}")
    expected = {**tables["container"], **ids}
    for name in ("grant", "memory"):
        check_keys(name, tables[name], expected)
    check_ids("grant", {key: one.container for key, one in tables["grant"].items()})
