"""The checkpoint form of the static policy's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.policy.events import Pin
from nri_resmgr.policy.records import (
    LEDGER_TABLES,
    BadRecord,
    Restored,
    Tables,
    ledger_from,
    ledger_tables,
)
from nri_resmgr.policy.static.policy import StaticPolicy
from nri_resmgr.policy.static.state import ReservedPlace, StaticState
from nri_resmgr.values import CpuSet

# A rename changes the format of checkpoints, see `nri_resmgr.policy.records`.
TABLES: Final[Mapping[str, type]] = {
    **LEDGER_TABLES,
    "grant": Pin,
    "former_place": CpuSet,
    "reserved_place": ReservedPlace,
    "announced": tuple[str, ...],
}

KEYS: Final[Mapping[str, type]] = {"former_place": tuple, "reserved_place": tuple}


def tables_of(state: StaticState) -> Tables:
    """Return the tables of a state."""
    return {
        **ledger_tables(state.ledger),
        "grant": state.grants,
        "former_place": state.former_places,
        "reserved_place": state.reserved_places,
        "announced": state.announced,
    }


def state_from(tables: Tables, _policy: StaticPolicy) -> Restored[StaticState]:
    """Make the state that *tables* describe.

    Its grants may be invalid by now: `synchronized` keeps those that are not.

    Raises:
        BadRecord: The tables contradict each other.
    """
    ledger, grants = ledger_from(tables, {}), tables["grant"]
    for key in grants.keys() - ledger.entries.keys():
        raise BadRecord(f"grant {key}", "there is no such container")
    state = StaticState(
        ledger=ledger,
        grants=grants,
        former_places=tables["former_place"],
        reserved_places=tables["reserved_place"],
        announced=tables["announced"],
    )
    return Restored(state, {})
