"""Checkpoint forms: states as tables of values, and back.

The names of tables, and those of the fields of their values, are the format of
checkpoints: after a rename, checkpoints of earlier versions cannot be read.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry, KnowsContainers, Ledger
from nri_resmgr.policy.mems import MemoryGrant, MemoryLayout, MemoryLedger
from nri_resmgr.values import InputError

StateT = TypeVar("StateT")

Key: TypeAlias = str | int | tuple[str, str]
"""The key of a row: an id, the number of a pool, or a pod and a slot."""

Rows: TypeAlias = Mapping[Any, Any]
"""The rows of a table by `Key`; a table's keys and values have types of its own."""

Tables: TypeAlias = Mapping[str, Rows]
"""Rows by name and key; the order of rows is part of the state."""

Dropped: TypeAlias = dict[str, str]
"""Records that could not be restored, and why."""

LEDGER_TABLES: Final[Mapping[str, type]] = {
    "container": ContainerSpec,
    "last_sent": Pin,
}
"""The types of the rows of a `Ledger`."""


@dataclass(eq=False)
class BadRecord(InputError):
    """A record of a checkpoint, such as ``container c1``, is not valid."""

    record: str
    why: str

    def __str__(self) -> str:
        return f"{self.record}: {self.why}"


class Restored(msgspec.Struct, Generic[StateT], frozen=True):
    """A state from a checkpoint, which only serves to keep former places.

    *dropped* are ids whose CPUs or memory no longer exist, with the reason.
    """

    state: StateT
    dropped: Mapping[str, str]


class Records(Protocol):
    """A checkpoint form: a module with these names, or an object."""

    @property
    def TABLES(self) -> Mapping[str, type]:  # noqa: N802 - a constant of modules
        """The types of the rows of each table."""

    @property
    def KEYS(self) -> Mapping[str, type]:  # noqa: N802 - a constant of modules
        """The types of the keys of tables, where these are not strings.

        Either int, or tuple for a pod and a slot.
        """

    def tables_of(self, state: Any) -> Tables:
        """Return the tables of a state, without values that follow from others."""

    def state_from(self, tables: Tables, policy: Any) -> Restored[Any]:
        """Restore a state from its tables.

        Raises:
            BadRecord: The tables are inconsistent.
        """


def ledger_tables(ledger: Ledger) -> Tables:
    """Return the tables of a ledger."""
    # Two tables: every change of a shared pool changes many pins, but no container.
    return {
        "container": {key: one.spec for key, one in ledger.entries.items()},
        "last_sent": {key: one.last_sent for key, one in ledger.entries.items()},
    }


def ledger_from(tables: Tables, dropped: Mapping[str, str]) -> Ledger:
    """Restore a ledger without dropped containers.

    Raises:
        BadRecord: A container lacks an id or its pin.
    """
    specs, last_sent = tables["container"], tables["last_sent"]
    check_ids("container", {key: spec.id for key, spec in specs.items()})
    check_keys("last_sent", last_sent, specs)
    entries = {k: Entry(specs[k], last_sent[k]) for k in specs if k not in dropped}
    return Ledger.of(entries)


def memory_from(
    rows: Mapping[str, MemoryGrant], layout: MemoryLayout
) -> tuple[MemoryLedger, Dropped]:
    """Restore a memory ledger without grants whose nodes no longer exist.

    Raises:
        BadRecord: A grant has another id than its key.
    """
    check_ids("memory", {key: one.request.id for key, one in rows.items()})
    dropped = {
        key: f"memory on nodes {one.zone} near {one.request.affinity} does not exist"
        for key, one in rows.items()
        if not one.zone
        or one.zone.bits & ~layout.nodes
        or one.request.affinity.bits & ~layout.known
    }
    kept = {key: one for key, one in rows.items() if key not in dropped}
    return MemoryLedger.counted(layout, kept), dropped


def check_ids(table: str, ids: Mapping[str, str]) -> None:
    """Check that the id of each row is its key.

    Raises:
        BadRecord: It is not.
    """
    for key, own in ids.items():
        if key != own:
            raise BadRecord(f"{table} {key}", f"is of {own!r}")


def check_keys(
    table: str, rows: Mapping[str, object], expected: Mapping[str, object]
) -> None:
    """Check that a table has exactly the expected keys.

    Raises:
        BadRecord: A row is missing or superfluous.
    """
    for key in expected.keys() - rows.keys():
        raise BadRecord(f"{table} {key}", "is missing")
    for key in rows.keys() - expected.keys():
        raise BadRecord(f"{table} {key}", "has no container")


_LEDGER = "ledger"
_ONLY = ""  # key of the row of a field that is not a mapping


class StateRecords:
    """The checkpoint form of a state class, by the declared types of its fields.

    The class is a `msgspec.Struct` with a field `ledger`. Each other field is a table
    of its name: the rows of a mapping, or a single row.

    Args:
        state: The class.

    Raises:
        TypeError: The class lacks the field, or has clashing ones.
    """

    def __init__(self, state: type[msgspec.Struct]) -> None:
        self._state = state
        types = {one.name: one.type for one in msgspec.structs.fields(state)}
        if types.pop(_LEDGER, None) is not Ledger:
            raise TypeError(f"{state.__name__} has no field ledger: Ledger")
        if clash := types.keys() & LEDGER_TABLES.keys():
            raise TypeError(f"{state.__name__} has fields of the ledger: {clash}")
        self._mappings = {
            name: typing.get_args(kind)
            for name, kind in types.items()
            if issubclass(typing.get_origin(kind) or object, Mapping)
        }
        self.TABLES = {
            **LEDGER_TABLES,
            **types,
            **{name: value for name, (_, value) in self._mappings.items()},
        }
        self.KEYS = {
            name: typing.get_origin(key) or key
            for name, (key, _) in self._mappings.items()
        }

    def tables_of(self, state: KnowsContainers) -> Tables:
        """Return the tables of a state."""
        own = {
            name: value if name in self._mappings else {_ONLY: value}
            for name in self.TABLES.keys() - LEDGER_TABLES.keys()
            for value in (getattr(state, name),)
        }
        # In the order of the fields: checkpoints have to be reproducible.
        rows = {name: own[name] for name in self.TABLES if name in own}
        return {**ledger_tables(state.ledger), **rows}

    def state_from(self, tables: Tables, _policy: object) -> Restored[Any]:
        """Restore a state.

        Whether its places can be kept is decided when the containers are listed.

        Raises:
            BadRecord: The tables do not form a state of this class.
        """
        fields: dict[str, object] = {_LEDGER: ledger_from(tables, {})}
        for name in self.TABLES.keys() - LEDGER_TABLES.keys():
            rows = tables[name]
            if name in self._mappings:
                fields[name] = MappingProxyType(dict(rows))
            elif _ONLY in rows:
                fields[name] = rows[_ONLY]
            elif rows:
                raise BadRecord(
                    f"{name} {next(iter(rows))}", "has a key, expected none"
                )
        try:
            return Restored(self._state(**fields), {})
        except TypeError as error:
            raise BadRecord(self._state.__name__, str(error)) from None
