"""Recordings as text: lines of JSON, a header and then entries.

Messages are protobuf in base64: the exact bytes, as large as their JSON form, and made
in a thirtieth of its time (a creation of 5 KB).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from google.protobuf.message import DecodeError, Message

from nri_proto import PLUGIN_METHODS, RUNTIME_METHODS
from nri_resmgr.policy.decision import PinUpdate, Reason
from nri_resmgr.policy.events import Rebalance
from nri_resmgr.recordings.entries import (
    Answered,
    BadRecording,
    Called,
    Configured,
    Decided,
    Entry,
    Header,
    MachineChanged,
    Rebalancing,
    RecordedCheckpoint,
    RecordedRefusal,
    Recording,
)
from nri_resmgr.topology.document import from_document, to_document
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import JsonObject, from_plain, to_plain

# Incremented when older readers would misread the text.
FORMAT: Final = 1

_HEADER: Final = "nri-resmgr recording"
_METHODS: Final = {**PLUGIN_METHODS, **RUNTIME_METHODS}


def header_line(header: Header) -> str:
    """Return the first line."""
    row = {_HEADER: FORMAT, **msgspec.structs.asdict(header)}
    return _line({**row, "machine": to_document(header.machine)})


def entry_line(entry: Entry) -> str:
    """Return the line of an entry."""
    row: JsonObject = {"time": entry.time}
    match entry:
        case Called():
            key = "we_call" if entry.is_ours else "call"
            row |= {key: entry.method, "number": entry.number, **_body(entry.body)}
        case Answered():
            key = "we_answer" if entry.is_ours else "answer"
            row |= {key: entry.method, "number": entry.number, **_body(entry.body)}
            if entry.body is None:
                row |= {"code": entry.code, "why": entry.why}
        case Decided():
            row |= _decided(entry)
        case Rebalancing():
            row["rebalance"] = to_plain(entry.event)
        case RecordedRefusal():
            row |= {"refused": entry.title, "why": entry.why}
        case RecordedCheckpoint():
            # As format 1 has it: older files stay readable.
            row["remembered"] = entry.text
        case Configured():
            row["configured"] = entry.text
        case MachineChanged():
            row["machine"] = to_document(entry.machine)
    return _line(row)


def _decided(entry: Decided) -> JsonObject:
    reasons = to_plain(entry.reasons)
    row: JsonObject = {"decided": entry.event, "reasons": reasons}
    if entry.hints:
        row["hints"] = {key: to_plain(hints) for key, hints in entry.hints}
    if entry.updates:
        row["updates"] = to_plain(entry.updates)
    return row


def read_header(text: str, path: str) -> Header:
    """Read the first line.

    Raises:
        BadRecording: It is not a header, or one of a later format.
    """
    try:
        row = json.loads(text)
        if not isinstance(row, dict) or _HEADER not in row:
            raise BadRecording(path, 1, "not a recording of nri-resmgr run --record")
        if row[_HEADER] != FORMAT:
            why = f"format {row[_HEADER]!r}, this version reads {FORMAT}"
            raise BadRecording(path, 1, why)
        return Header(
            version=str(row["version"]),
            time=int(row["time"]),
            machine=from_document(row["machine"]),
            dry_run=bool(row["dry_run"]),
            unsolicited_updates=str(row["unsolicited_updates"]),
            has_env=bool(row["has_env"]),
        )
    except (*_WRONG, InputError) as error:
        if isinstance(error, BadRecording):
            raise
        raise BadRecording(path, 1, f"not a recording: {_why(error)}") from None


def read_entries(lines: Iterator[str], path: str) -> Iterator[Entry]:
    """Read the lines after the header.

    Raises:
        BadRecording: A line is invalid; those before it are yielded.
    """
    for number, line in enumerate(lines, 2):
        try:
            entry = _entry(json.loads(line))
        except (*_WRONG, InputError) as error:
            raise BadRecording(path, number, _why(error)) from None
        yield entry


def load_recording(lines: Iterator[str], path: str) -> Recording:
    """Load a recording; of a truncated one, the complete entries.

    Raises:
        BadRecording: The header is not that of a recording.
    """
    header = read_header(next(lines, ""), path)
    entries: list[Entry] = []
    try:
        for entry in read_entries(lines, path):
            entries.append(entry)  # noqa: PERF402 - those before a bad one count
    except BadRecording as bad:
        return Recording(header, tuple(entries), str(bad))
    return Recording(header, tuple(entries))


# Errors of reading a line that `entry_line` did not write.
_WRONG: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "cut off, or not JSON"
    if isinstance(error, KeyError):
        return f"no {error.args[0]!r}"
    return " ".join(str(error).split()) or type(error).__name__


_TEXTS: Final[Mapping[str, type[RecordedCheckpoint | Configured]]] = {
    "remembered": RecordedCheckpoint,
    "configured": Configured,
}


def _entry(row: JsonObject) -> Entry:
    time = int(row["time"])
    for key, is_ours in (("call", False), ("we_call", True)):
        if key in row:
            body = _message(row, row[key], is_request=True)
            return Called(time, int(row["number"]), row[key], body, is_ours)
    for key, is_ours in (("answer", False), ("we_answer", True)):
        if key in row:
            body = _message(row, row[key], is_request=False)
            failed = int(row.get("code", 0)), str(row.get("why", ""))
            return Answered(time, int(row["number"]), row[key], body, *failed, is_ours)
    if "decided" in row:
        reasons = from_plain(tuple[Reason, ...], row["reasons"])
        hints = tuple(
            (key, from_plain(tuple[Hint, ...], one))
            for key, one in row.get("hints", {}).items()
        )
        updates = from_plain(tuple[PinUpdate, ...], row.get("updates", []))
        return Decided(time, str(row["decided"]), reasons, hints, updates)
    return _without_message(row, time)


def _without_message(row: JsonObject, time: int) -> Entry:
    if "rebalance" in row:
        found = row["rebalance"]
        # The keys of JSON are text.
        busy = {int(cpu): int(share) for cpu, share in found.get("busy", {}).items()}
        return Rebalancing(time, Rebalance(int(found["limit"]), busy))
    if "refused" in row:
        return RecordedRefusal(time, str(row["refused"]), str(row["why"]))
    for key, kind in _TEXTS.items():
        if key in row:
            return kind(time, str(row[key]))
    return MachineChanged(time, from_document(row["machine"]))


def _message(row: JsonObject, method: str, *, is_request: bool) -> Message | None:
    found = _METHODS[method]
    if "body" not in row:
        return None
    kind = found.request if is_request else found.response
    try:
        return kind.FromString(base64.b64decode(row["body"], validate=True))
    except (DecodeError, ValueError) as error:
        raise ValueError(f"not a message of {method}") from error


def _body(message: Message | None) -> dict[str, str]:
    if message is None:
        return {}
    return {"body": base64.b64encode(message.SerializeToString()).decode()}


def _line(row: JsonObject) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=True) + "\n"
