"""States of the static policy as records, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
from nri_resmgr.policy.static.state import StaticState
from nri_resmgr.values import CpuSet

TABLES: Final[Mapping[str, Any]] = {**LEDGER_TABLES, "grant": Pin, "vacated": CpuSet}

KEYS: Final[Mapping[str, type]] = {"vacated": tuple}


def tables_of(state: StaticState) -> Tables:
    """Return what a state consists of."""
    ledger = ledger_tables(state.ledger)
    return {**ledger, "grant": state.grants, "vacated": state.vacated}


def state_from(tables: Tables, _policy: StaticPolicy) -> Restored[StaticState]:
    """Make a state again.

    Whether its CPUs can be granted is seen when it is told who runs.

    Raises:
        BadRecord: The tables are of no state.
    """
    ledger, grants = ledger_from(tables, {}), tables["grant"]
    for key in grants.keys() - ledger.entries.keys():
        raise BadRecord(f"grant {key}", "belongs to nobody")
    return Restored(StaticState(ledger, grants, tables["vacated"]), {})
