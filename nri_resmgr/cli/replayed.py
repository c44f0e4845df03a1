"""A replay's outcome, and a recording itself, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml
from google.protobuf.json_format import MessageToDict

from nri_resmgr.cli.tables import format_changes
from nri_resmgr.recordings.entries import (
    Answered,
    Called,
    Configured,
    Decided,
    Entry,
    MachineChanged,
    RecordedCheckpoint,
    RecordedRefusal,
)
from nri_resmgr.scenario.compare import REFUSED
from nri_resmgr.scenario.differences import Outcome
from nri_resmgr.scenario.load import Recording
from nri_resmgr.topology.text import format_tree

# Raised when a key changes its meaning or goes.
FORMAT: Final = 1

_HEADER: Final = ("after", "container", "what", "recorded", "now")
_SECOND: Final = 1_000_000_000


def show_outcome(recording: Recording, outcome: Outcome, output: str) -> str:
    """Write what differs as a table, or as JSON; times are since the beginning."""
    began = recording.header.time
    if output == "json":
        documents = [
            {**msgspec.structs.asdict(one), "after": (one.time - began) / _SECOND}
            for one in outcome.differences
        ]
        found = {
            "format": FORMAT,
            "requests": outcome.requests,
            "decisions": outcome.decisions,
            "differences": documents,
            "cut": recording.cut,
        }
        return json.dumps(found, indent=2)
    said = f"{outcome.requests} requests, {outcome.decisions} decisions"
    if not outcome.differences:
        return f"{said}: no difference"
    rows = (
        (_after(one.time, began), one.title, one.what, one.recorded, one.now)
        for one in outcome.differences
    )
    table = format_changes(_HEADER, rows, REFUSED)
    return f"{table}\n\n{said}, {len(outcome.differences)} differences"


def print_recording(recording: Recording, output: str) -> None:
    """Print entry by entry what was said, as text or as lines of JSON."""
    began = recording.header.time
    if output == "json":
        for entry in recording.entries:
            row = {"after": (entry.time - began) / _SECOND, **_plain(entry)}
            print(json.dumps(row))
        return
    header = recording.header
    print(f"recorded by nri-resmgr {header.version or '(unknown)'}")
    print(format_tree(header.machine))
    for entry in recording.entries:
        print(f"\n{_after(entry.time, began)}  {_headline(entry)}")
        for line in _body(entry):
            print(f"    {line}")


def _after(time: int, began: int) -> str:
    return f"+{(time - began) / _SECOND:.3f}s"


def _headline(entry: Entry) -> str:
    match entry:
        case Called():
            who = "plugin -> runtime" if entry.is_ours else "runtime -> plugin"
            return f"{who}  {entry.method} #{entry.number}"
        case Answered():
            who = "plugin <- runtime" if not entry.is_ours else "runtime <- plugin"
            failed = f" failed with {entry.code}: {entry.why}" if entry.code else ""
            return f"{who}  {entry.method} #{entry.number}{failed}"
        case Decided():
            return f"decided  {entry.event}"
        case RecordedRefusal():
            return f"refused  {entry.title}"
    return _HEADLINES[type(entry)]


_HEADLINES: Final = {
    RecordedCheckpoint: "state of an earlier process",
    Configured: "configuration in force",
    MachineChanged: "machine changed",
}


def _body(entry: Entry) -> Iterator[str]:
    match entry:
        case Called() | Answered():
            text = (
                yaml.safe_dump(_message(entry), sort_keys=False) if entry.body else ""
            )
            yield from () if text == "{}\n" else text.splitlines()
        case Decided():
            for one in entry.reasons:
                where = f"CPUs {one.cpus or 'any'}, nodes {one.mems or 'any'}"
                pool = f", pool {one.pool}" if one.pool else ""
                yield f"{one.title or one.container}: {where}{pool}, {one.rule.value}"
        case RecordedRefusal():
            yield entry.why
        case RecordedCheckpoint():
            yield from entry.text.splitlines()[:1]
        case Configured():
            yield from entry.text.splitlines() or ["(the built-in default)"]
        case MachineChanged():
            yield from format_tree(entry.machine).splitlines()


def _message(entry: Called | Answered) -> dict[str, Any]:
    if entry.body is None:
        return {}
    found: dict[str, Any] = MessageToDict(entry.body, preserving_proto_field_name=True)
    return found


def _plain(entry: Entry) -> dict[str, Any]:
    kind = type(entry).__name__.lower()
    match entry:
        case Called() | Answered():
            row = {"method": entry.method, "number": entry.number}
            row |= {"is_ours": entry.is_ours, "message": _message(entry)}
            if isinstance(entry, Answered) and entry.code:
                row |= {"code": entry.code, "why": entry.why}
            return {"kind": kind, **row}
        case Decided():
            return {
                "kind": kind,
                "event": entry.event,
                "containers": list(_body(entry)),
            }
        case RecordedRefusal():
            return {"kind": kind, "title": entry.title, "why": entry.why}
        case Configured() | RecordedCheckpoint():
            return {"kind": kind, "text": entry.text}
    return {"kind": kind, "machine": list(_body(entry))}
