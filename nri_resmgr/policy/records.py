"""States as tables of values, which can be written down and read again."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry, Ledger
from nri_resmgr.policy.mems import MemoryGrant, MemoryLayout, MemoryLedger
from nri_resmgr.values import InputError

StateT = TypeVar("StateT")

Tables: TypeAlias = Mapping[str, Mapping[Any, Any]]
"""Rows by name and key; the order of rows is part of the state."""

Dropped: TypeAlias = dict[str, str]
"""What is not there any more, and why."""

LEDGER_TABLES: Final[Mapping[str, Any]] = {"container": ContainerSpec, "told": Pin}
"""The types of the rows that tell of a `Ledger`."""


@dataclass(eq=False)
class BadRecord(InputError):
    """Something that was written down makes no sense.

    Attributes:
        record: Which: ``container c1``.
        why: What is wrong with it.
    """

    record: str
    why: str

    def __str__(self) -> str:
        return f"{self.record}: {self.why}"


class Restored(msgspec.Struct, Generic[StateT], frozen=True):
    """A state out of records, as good as the one that was written down.

    Attributes:
        state: It only helps to keep what was: nobody is placed by it.
        dropped: What was on CPUs or memory that are not there any more, and why.
    """

    state: StateT
    dropped: Mapping[str, str]


class Records(Protocol):
    """A checkpoint form: a module with these names, or an object."""

    @property
    def TABLES(self) -> Mapping[str, Any]:  # noqa: N802 - a constant of modules
        """The types of the rows of each table."""

    @property
    def KEYS(self) -> Mapping[str, type]:  # noqa: N802 - a constant of modules
        """The types of the keys of tables, where these are no texts.

        Either int, or tuple for a pod and a slot in it.
        """

    def tables_of(self, state: Any) -> Tables:
        """Return what a state consists of; what follows from it is left out."""

    def state_from(self, tables: Tables, policy: Any) -> Restored[Any]:
        """Make a state that equals the one that *tables* are of.

        Raises:
            BadRecord: They are of no state that the policy could have had.
        """


def ledger_tables(ledger: Ledger) -> Tables:
    """Return what a ledger consists of."""
    # Two tables: with every change of a shared pool many pins are told anew.
    return {
        "container": {key: one.spec for key, one in ledger.entries.items()},
        "told": {key: one.last_sent for key, one in ledger.entries.items()},
    }


def ledger_from(tables: Tables, dropped: Mapping[str, str]) -> Ledger:
    """Make a ledger without those that are dropped.

    Raises:
        BadRecord: A container is without id, or without its pins.
    """
    specs, told = tables["container"], tables["told"]
    check_ids("container", {key: spec.id for key, spec in specs.items()})
    check_keys("told", told, specs)
    entries = {k: Entry(specs[k], told[k]) for k in specs if k not in dropped}
    return Ledger.of(entries)


def memory_from(
    rows: Mapping[str, MemoryGrant], layout: MemoryLayout
) -> tuple[MemoryLedger, Dropped]:
    """Make a ledger of memory without those whose nodes are gone.

    Raises:
        BadRecord: A grant is another one's.
    """
    check_ids("memory", {key: one.request.id for key, one in rows.items()})
    dropped = {
        key: f"memory on nodes {one.zone} near {one.request.affinity} is not there"
        for key, one in rows.items()
        if not one.zone
        or one.zone.bits & ~layout.nodes
        or one.request.affinity.bits & ~layout.known
    }
    kept = {key: one for key, one in rows.items() if key not in dropped}
    return MemoryLedger.counted(layout, kept), dropped


def check_ids(table: str, ids: Mapping[str, str]) -> None:
    """See that each row tells of its own key.

    Raises:
        BadRecord: One does not.
    """
    for key, own in ids.items():
        if key != own:
            raise BadRecord(f"{table} {key}", f"tells of {own!r}")


def check_keys(
    table: str, rows: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """See that a table has a row for each of some keys, and no others.

    Raises:
        BadRecord: One is missing, or too many.
    """
    for key in expected.keys() - rows.keys():
        raise BadRecord(f"{table} {key}", "is missing")
    for key in rows.keys() - expected.keys():
        raise BadRecord(f"{table} {key}", "belongs to nobody")


_LEDGER = "ledger"
_ONLY = ""  # the key of the row of what is no mapping


class StateRecords:
    """Turns states of a class into records, and back.

    The class is a `msgspec.Struct` with a field `ledger`. Each other field that is a
    mapping is a table of its name; each that is none is a table with one row.

    Args:
        state: The class.

    Raises:
        TypeError: The class is none of which that is known.
    """

    def __init__(self, state: type[Any]) -> None:
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

    def tables_of(self, state: Any) -> Tables:
        """Return what a state consists of."""
        own = {
            name: value if name in self._mappings else {_ONLY: value}
            for name in self.TABLES.keys() - LEDGER_TABLES.keys()
            for value in (getattr(state, name),)
        }
        # In the order of the fields, whatever the order of a set is.
        rows = {name: own[name] for name in self.TABLES if name in own}
        return {**ledger_tables(state.ledger), **rows}

    def state_from(self, tables: Tables, _policy: object) -> Restored[Any]:
        """Make a state again.

        Whether its places can be kept is decided when the containers are known.

        Raises:
            BadRecord: The tables are of no state of this class.
        """
        fields: dict[str, Any] = {_LEDGER: ledger_from(tables, {})}
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
