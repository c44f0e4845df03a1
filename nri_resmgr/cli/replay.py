"""``nri-resmgr replay``: repeat the decisions of a recording, show what differs."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import yaml
from google.protobuf.json_format import MessageToDict

from nri_resmgr.cli.chosen_machine import named_machine, readable
from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.output import (
    API_VERSION,
    add_output,
    document_text,
    is_document,
    own_document,
    print_each,
)
from nri_resmgr.cli.output_files import write_file
from nri_resmgr.cli.tables import format_changes
from nri_resmgr.host.bounded import RECORDING, read_lines
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.policies import parse_config
from nri_resmgr.recordings.entries import (
    Answered,
    Called,
    Configured,
    Decided,
    Entry,
    MachineChanged,
    RecordedCheckpoint,
    RecordedRefusal,
    Recording,
)
from nri_resmgr.recordings.text import load_recording
from nri_resmgr.scenario.compare import REFUSED
from nri_resmgr.scenario.differences import Outcome, Replacements
from nri_resmgr.scenario.manifests import BadFile
from nri_resmgr.scenario.replay import Replay
from nri_resmgr.scenario.timeline import Timeline
from nri_resmgr.scenario.trace_events import trace_text
from nri_resmgr.topology.text import format_tree
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable

_EXAMPLES: Final = """\
examples:
  nri-resmgr run --record /var/lib/nri-resmgr/today.rec    record a node
  nri-resmgr replay today.rec                              what this version changes
  nri-resmgr replay today.rec --config-file new.yaml       what another document changes
  nri-resmgr replay today.rec --show                       print its messages
  nri-resmgr replay today.rec --timeline trace.json        to open in ui.perfetto.dev

exit status: 0 nothing differs; 1 something differs, or failed; 2 bad input
"""

_HEADER: Final = ("after", "container", "what", "recorded", "now")
_TIMELINE: Final = "--timeline"
_SECOND: Final = 1_000_000_000


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Send the requests of a recording to the real plugin, at their recorded times, "
        "and show which decisions differ."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording")
    parser.add_argument(
        "--config-file",
        type=Path,
        metavar="FILE",
        help="configuration to use, default the recorded one",
    )
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="another machine: a synthetic one, or a file of `topology dump`; default "
        "is the recorded one",
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--show",
        action="store_true",
        help="print the recorded messages and decisions, and exit",
    )
    ways.add_argument(
        _TIMELINE,
        metavar="FILE",
        help="file to write the replayed placements in, as a trace for Perfetto and "
        "Chrome",
    )
    add_output(parser, each="entry with --show")


def run(options: argparse.Namespace) -> int:
    """Replay a recording, or print it."""
    path = options.file
    with readable(path):
        recording = load_recording(read_lines(path, RECORDING), str(path))
    if recording.cut:
        print(
            f"nri-resmgr: {printable(recording.cut)}; only what is before is used",
            file=sys.stderr,
        )
    if options.show:
        print_recording(recording, options.output)
        return 0
    # Warnings of the replay were logged then, or are among the differences.
    configure_logging("error", LogFormat.TEXT)
    header, timeline = recording.header, Timeline() if options.timeline else None
    replay = Replay(header, recording.entries, _replacements(options), timeline)
    outcome = asyncio.run(replay.run())
    if timeline is not None:
        write_file(_TIMELINE, options.timeline, trace_text(timeline, header.time))
    print(show_outcome(recording, outcome, options.output))
    return int(bool(outcome.differences))


def _replacements(options: argparse.Namespace) -> Replacements:
    document = None
    if options.config_file:
        document = read_text_file(options.config_file)
        try:
            parse_config(document)
        except InputError as mistake:
            raise BadFile(options.config_file, mistake) from None
    machine = named_machine(options.topology) if options.topology else None
    return Replacements(document, machine)


def show_outcome(recording: Recording, outcome: Outcome, output: str) -> str:
    """Format differences as a table or document; times count from the beginning."""
    began = recording.header.time
    if is_document(output):
        documents = [
            {**msgspec.structs.asdict(one), "after": (one.time - began) / _SECOND}
            for one in outcome.differences
        ]
        found: JsonObject = {
            "requests": outcome.requests,
            "decisions": outcome.decisions,
            "differences": documents,
            "cut": recording.cut,
        }
        return document_text(own_document("Replay", found), output)
    counts = f"{outcome.requests} requests, {outcome.decisions} decisions"
    if not outcome.differences:
        return f"{counts}: no difference"
    rows = (
        (_after(one.time, began), one.title, one.what, one.recorded, one.now)
        for one in outcome.differences
    )
    table = format_changes(_HEADER, rows, REFUSED)
    return f"{table}\n\n{counts}, {len(outcome.differences)} differences"


def print_recording(recording: Recording, output: str) -> None:
    """Print the entries of a recording, as text or as a document each."""
    began = recording.header.time
    if is_document(output):
        for entry in recording.entries:
            after = {"after": (entry.time - began) / _SECOND}
            row = {"apiVersion": API_VERSION, **_plain(entry), **after}
            print_each(row, output)
        return
    header = recording.header
    print(f"recorded by nri-resmgr {printable(header.version) or '(unknown)'}")
    print(format_tree(header.machine))
    for entry in recording.entries:
        print(f"\n{_after(entry.time, began)}  {printable(_headline(entry))}")
        for line in _body(entry):
            print(f"    {printable(line)}")


def _after(time: int, began: int) -> str:
    return f"+{(time - began) / _SECOND:.3f}s"


def _headline(entry: Entry) -> str:
    match entry:
        case Called():
            ends = "plugin -> runtime" if entry.is_ours else "runtime -> plugin"
            return f"{ends}  {entry.method} #{entry.number}"
        case Answered():
            ends = "plugin <- runtime" if not entry.is_ours else "runtime <- plugin"
            failed = f" failed with {entry.code}: {entry.why}" if entry.code else ""
            return f"{ends}  {entry.method} #{entry.number}{failed}"
        case Decided():
            return f"decided  {entry.event}"
        case RecordedRefusal():
            return f"refused  {entry.title}"
    return _HEADLINES[type(entry)]


# Scripts read these words: they do not change with the names of classes.
_KINDS: Final[Mapping[type[Entry], str]] = {
    Called: "called",
    Answered: "answered",
    Decided: "decided",
    RecordedRefusal: "refused",
    RecordedCheckpoint: "remembered",
    Configured: "configured",
    MachineChanged: "machinechanged",
}


_HEADLINES: Final = {
    RecordedCheckpoint: "state of an earlier process",
    Configured: "configuration in force",
    MachineChanged: "machine changed",
}


def _body(entry: Entry) -> Iterator[str]:
    match entry:
        case Called() | Answered():
            if message := _message(entry):
                yield from yaml.safe_dump(message, sort_keys=False).splitlines()
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


def _message(entry: Called | Answered) -> JsonObject:
    if entry.body is None:
        return {}
    found: JsonObject = MessageToDict(entry.body, preserving_proto_field_name=True)
    return found


def _plain(entry: Entry) -> JsonObject:
    row: JsonObject = {"kind": _KINDS[type(entry)]}
    match entry:
        case Called() | Answered():
            row |= {"method": entry.method, "number": entry.number}
            row["sender"] = "plugin" if entry.is_ours else "runtime"
            row["message"] = _message(entry)
            if isinstance(entry, Answered) and entry.code:
                row |= {"code": entry.code, "why": entry.why}
        case Decided():
            row |= {"event": entry.event, "containers": list(_body(entry))}
        case RecordedRefusal():
            row |= {"title": entry.title, "why": entry.why}
        case Configured() | RecordedCheckpoint():
            row["text"] = entry.text
        case MachineChanged():
            row["machine"] = list(_body(entry))
    return row
