"""States of any policy as records, by the declared types of their fields."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.records import (
    LEDGER_TABLES,
    BadRecord,
    Restored,
    Tables,
    ledger_from,
    ledger_tables,
)

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
