"""States of the balloons policy as records, and back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState, Seat, Vacated
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
from nri_resmgr.values import CpuSet

TABLES: Final[Mapping[str, Any]] = {
    **LEDGER_TABLES,
    "balloon": Balloon,
    "seat": Seat,
    "memory": MemoryGrant,
    "vacated": Vacated,
    "node": bool,
}

KEYS: Final[Mapping[str, type]] = {"vacated": tuple}


def tables_of(state: BalloonsState) -> Tables:
    """Return what a state consists of; what is free follows from the balloons."""
    return {
        **ledger_tables(state.ledger),
        "balloon": state.balloons,
        "seat": state.seats,
        "memory": state.memory.grants,
        "vacated": state.vacated,
        "node": {"unsettled": state.unsettled},
    }


def state_from(tables: Tables, policy: BalloonsPolicy) -> Restored[BalloonsState]:
    """Make a state with the balloons that there were.

    Whether these can be is seen when it is told who runs: their types may be gone.

    Raises:
        BadRecord: The tables are of no state.
    """
    balloons: Mapping[str, Balloon] = tables["balloon"]
    check_ids("balloon", {key: one.name for key, one in balloons.items()})
    check_keys("seat", tables["seat"], tables["container"])
    for key in tables["memory"].keys() - tables["container"].keys():
        raise BadRecord(f"memory {key}", "belongs to nobody")
    _check_members(balloons, tables["seat"])
    for balloon in balloons.values():
        _check_parts(balloon, balloons)
    memory, dropped = memory_from(tables["memory"], policy.ground.memory)
    taken = CpuSet.union(one.cpus for one in balloons.values() if not one.parts)
    state = BalloonsState(
        ledger=ledger_from(tables, {}),
        balloons=MappingProxyType(dict(balloons)),
        seats=MappingProxyType(dict(tables["seat"])),
        free=policy.settings.available - taken,
        memory=memory,
        vacated=MappingProxyType(dict(tables["vacated"])),
        unsettled=tables["node"].get("unsettled", True),
    )
    return Restored(state, dropped)


def _check_members(balloons: Mapping[str, Balloon], seats: Mapping[str, Seat]) -> None:
    """See that those who sit in a balloon are just its members."""
    seated = {(key, one.balloon) for key, one in seats.items() if one.balloon}
    for name, balloon in balloons.items():
        for key in balloon.members:
            if (key, name) not in seated:
                raise BadRecord(f"balloon {name}", f"{key} is not, or twice, in it")
            seated.remove((key, name))
    for key, name in seated:
        raise BadRecord(f"seat {key}", f"is unknown to balloon {name!r}")


def _check_parts(balloon: Balloon, balloons: Mapping[str, Balloon]) -> None:
    for name in balloon.parts:
        part = balloons.get(name)
        if part is None or part.within != balloon.name:
            raise BadRecord(f"balloon {balloon.name}", f"{name!r} is no part of it")
    whole = balloon.within and balloons.get(balloon.within)
    if balloon.within and not (whole and balloon.name in whole.parts):
        raise BadRecord(f"balloon {balloon.name}", f"is not within {balloon.within!r}")
    above = balloon
    for _ in balloons:  # no more steps than there are balloons lead out of all
        if not above.within:
            return
        above = balloons.get(above.within, balloon)
    raise BadRecord(f"balloon {balloon.name}", "is within itself")
