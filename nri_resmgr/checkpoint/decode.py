"""Reading checkpoints: the header and checksum first, then each record."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from nri_resmgr.checkpoint.encode import FORMAT
from nri_resmgr.policies import find_kind
from nri_resmgr.policy.decision import Policy
from nri_resmgr.policy.records import BadRecord, Key, Records, Restored, Rows
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import BadValue, JsonObject, from_plain

StateT = TypeVar("StateT")


@dataclass(eq=False)
class BadCheckpoint(InputError):
    """A text is not a complete checkpoint."""

    why: str

    def __str__(self) -> str:
        return f"the checkpoint is unreadable: {self.why}"


@dataclass(eq=False)
class NewerCheckpoint(InputError):
    """A checkpoint was written by a later version, in a later format."""

    version: str
    found: int

    def __str__(self) -> str:
        return (
            f"the checkpoint is of version {self.version}, in format {self.found}; "
            f"this version reads formats up to {FORMAT}"
        )


class Checkpoint(msgspec.Struct, frozen=True):
    """A complete checkpoint.

    Attributes:
        kind: The kind of the policy.
        version: The version of nri-resmgr that wrote it.
        written: The time at which it was written.
        rows: Plain data by table and key, for `state_for`.
    """

    kind: str
    version: str
    written: str
    rows: Mapping[str, Rows]

    def state_for(self, policy: Policy[StateT]) -> Restored[StateT]:
        """Make the state, for a policy of the same kind.

        Raises:
            BadRecord: A record is invalid.
        """
        records = find_kind(self.kind).records()
        for name in self.rows.keys() - records.TABLES.keys():
            raise BadRecord(name, f"{self.kind} has no such records")
        tables = {
            name: _values(name, records, self.rows.get(name, {}))
            for name in records.TABLES
        }
        return records.state_from(tables, policy)


def read_checkpoint(text: str) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        BadCheckpoint: It is incomplete or was changed.
        NewerCheckpoint: A later version wrote it.
    """
    first, _, body = text.partition("\n")
    header = _header(first)
    if header["format"] > FORMAT:
        raise NewerCheckpoint(header["version"], header["format"])
    if zlib.crc32(body.encode("utf-8", "surrogateescape")) != header["crc32"]:
        raise BadCheckpoint("it was cut off or changed")
    rows: dict[str, dict[Key, object]] = {}
    # JSON escapes all but ASCII, so there are no other line separators in the text.
    for number, line in enumerate(body.splitlines(), 2):
        name, key, data = _row(line, number)
        rows.setdefault(name, {})[key] = data
    return Checkpoint(header["policy"], header["version"], header["written"], rows)


def _header(line: str) -> JsonObject:
    found = _parsed(line, 1)
    if not isinstance(found, dict) or found.get("checkpoint") != "nri-resmgr":
        raise BadCheckpoint("it has no header")
    expected = {"format": int, "version": str, "policy": str, "written": str}
    for name, kind in (expected | {"crc32": int}).items():
        if type(found.get(name)) is not kind:
            raise BadCheckpoint(f"line 1 has no {name}")
    return found


def _row(line: str, number: int) -> tuple[str, Key, object]:
    match _parsed(line, number):
        case [str() as name, str() | int() as key, data]:
            return name, key, data
        case [str() as name, [str() as pod, str() as slot], data]:
            return name, (pod, slot), data
    raise BadCheckpoint(f"line {number} is not a record")


def _parsed(line: str, number: int) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise BadCheckpoint(f"line {number} is not JSON") from None


def _values(name: str, records: Records, rows: Rows) -> Rows:
    kind = records.TABLES[name]
    values: dict[object, object] = {}
    for key, data in rows.items():
        if type(key) is not records.KEYS.get(name, str):
            raise BadRecord(f"{name} {key}", "is not a key of this table")
        try:
            values[key] = from_plain(kind, data)
        except BadValue as mistake:
            raise BadRecord(f"{name} {key}", str(mistake)) from None
    return values
