"""The checkpoint form of the balloons policy's state."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.state import (
    Balloon,
    BalloonsState,
    FormerPlace,
    Membership,
    ReservedRoom,
    Slot,
)
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

# A rename changes the format of checkpoints, see `nri_resmgr.policy.records`.
TABLES: Final[Mapping[str, type]] = {
    **LEDGER_TABLES,
    "balloon": Balloon,
    "membership": Membership,
    "memory": MemoryGrant,
    "former_place": FormerPlace,
    "reserved_room": ReservedRoom,
    "announced": tuple[str, ...],
    "node": bool,
}

KEYS: Final[Mapping[str, type]] = {"former_place": tuple, "reserved_room": tuple}


def tables_of(state: BalloonsState) -> Tables:
    """Return the tables of a state; free CPUs are computed from the balloons."""
    return {
        **ledger_tables(state.ledger),
        "balloon": state.balloons,
        "membership": state.memberships,
        "memory": state.memory.grants,
        "former_place": state.former_places,
        "reserved_room": state.reserved_rooms,
        "announced": state.announced,
        "node": {"unsettled": state.unsettled},
    }


def state_from(tables: Tables, policy: BalloonsPolicy) -> Restored[BalloonsState]:
    """Make the state that *tables* describe.

    Balloons may not fit the present settings: `synchronized` restores those that do.

    Raises:
        BadRecord: The tables contradict each other.
    """
    balloons: Mapping[str, Balloon] = tables["balloon"]
    check_ids("balloon", {key: one.name for key, one in balloons.items()})
    check_keys("membership", tables["membership"], tables["container"])
    for key in tables["memory"].keys() - tables["container"].keys():
        raise BadRecord(f"memory {key}", "there is no such container")
    _check_members(balloons, tables["membership"])
    _check_rooms(balloons, tables["reserved_room"])
    for balloon in balloons.values():
        _check_parts(balloon, balloons)
    memory, dropped = memory_from(tables["memory"], policy.context.memory)
    taken = CpuSet.union(one.cpus for one in balloons.values() if not one.parts)
    state = BalloonsState(
        ledger=ledger_from(tables, {}),
        balloons=MappingProxyType(dict(balloons)),
        memberships=MappingProxyType(dict(tables["membership"])),
        free=policy.settings.available - taken,
        memory=memory,
        former_places=MappingProxyType(dict(tables["former_place"])),
        reserved_rooms=tables["reserved_room"],
        announced=tables["announced"],
        unsettled=tables["node"].get("unsettled", True),
    )
    return Restored(state, dropped)


def _check_members(
    balloons: Mapping[str, Balloon], memberships: Mapping[str, Membership]
) -> None:
    """Check that balloons and memberships name each other, and each just once."""
    expected = {(key, one.balloon) for key, one in memberships.items() if one.balloon}
    for name, balloon in balloons.items():
        for key in balloon.members:
            if (key, name) not in expected:
                raise BadRecord(
                    f"balloon {name}", f"{key} is not a member, or listed twice"
                )
            expected.remove((key, name))
    for key, name in expected:
        raise BadRecord(f"membership {key}", f"is not listed in balloon {name!r}")


def _check_rooms(
    balloons: Mapping[str, Balloon], rooms: Mapping[Slot, ReservedRoom]
) -> None:
    """Check that balloons and reserved rooms name each other."""
    for slot, room in rooms.items():
        if slot != (room.spec.pod, room.spec.name):
            raise BadRecord(f"reserved_room {slot}", f"is of {room.spec.id}")
    listed = {(key, name) for name, one in balloons.items() for key in one.rooms}
    for key, name in listed ^ {(one.spec.id, one.balloon) for one in rooms.values()}:
        raise BadRecord(f"balloon {name}", f"room {key} is not in both tables")


def _check_parts(balloon: Balloon, balloons: Mapping[str, Balloon]) -> None:
    for name in balloon.parts:
        part = balloons.get(name)
        if part is None or part.within != balloon.name:
            raise BadRecord(
                f"balloon {balloon.name}", f"{name!r} is not a component of it"
            )
    whole = balloon.within and balloons.get(balloon.within)
    if balloon.within and not (whole and balloon.name in whole.parts):
        raise BadRecord(f"balloon {balloon.name}", f"is not within {balloon.within!r}")
    above = balloon
    for _ in balloons:  # a chain without a cycle is no longer than this
        if not above.within:
            return
        above = balloons.get(above.within, balloon)
    raise BadRecord(f"balloon {balloon.name}", "is within itself")
