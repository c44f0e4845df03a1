"""``nri-resmgr replay``: what would be decided otherwise, had this been in force."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from nri_resmgr.cli.flags import Commands, Help, add_output

_EXAMPLES: Final = """\
examples:
  nri-resmgr run --record /var/lib/nri-resmgr/today.rec    record a node
  nri-resmgr replay today.rec                              does this version differ?
  nri-resmgr replay today.rec --config-file new.yaml       would this document?
  nri-resmgr replay today.rec --show                       read what was said

exit status: 0 nothing differs; 1 something differs, or failed; 2 bad input
"""


def add_replay(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "replay",
        help="decide a recording again, and show what differs",
        description="Take the requests of a recording to the real plugin, in the "
        "recording's own time, and show what is decided otherwise.",
        epilog=_EXAMPLES,
        formatter_class=Help,
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--config-file", type=Path, metavar="FILE", help="a configuration instead"
    )
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="another machine: a made-up one, or a file of `topology dump`",
    )
    parser.add_argument(
        "--show", action="store_true", help="print what was said, and decide nothing"
    )
    add_output(parser, "table", "json")
    parser.set_defaults(command=replay)


def replay(options: argparse.Namespace) -> int:
    """Replay a recording, or show it.

    Raises:
        ResmgrError: Bad input.
    """
    # Late: other commands need none of it.
    import asyncio
    import sys

    from nri_resmgr.cli.replayed import print_recording, show_outcome
    from nri_resmgr.log.output import LogFormat, configure_logging
    from nri_resmgr.scenario.replay import Replay

    recording = _load(options.file)
    if recording.cut:
        print(
            f"nri-resmgr: {recording.cut}; this is about what is before",
            file=sys.stderr,
        )
    if options.show:
        print_recording(recording, options.output)
        return 0
    # What is logged now was logged then, or is among the differences.
    configure_logging("error", LogFormat.TEXT)
    instead = _instead(options)
    going = Replay(recording.header, recording.entries, instead)
    outcome = asyncio.run(going.run())
    print(show_outcome(recording, outcome, options.output))
    return int(bool(outcome.differences))


def _load(path: Path) -> Any:
    from nri_resmgr.host.text_file import UnreadableFile
    from nri_resmgr.scenario.load import load_recording

    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return load_recording(lines, str(path))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UnreadableFile(path, why) from None


def _instead(options: argparse.Namespace) -> Any:
    from nri_resmgr.cli.chosen_machine import named_machine
    from nri_resmgr.cli.simulate import BadFile
    from nri_resmgr.config import parse_config
    from nri_resmgr.host.text_file import read_text_file
    from nri_resmgr.scenario.differences import Instead
    from nri_resmgr.values import InputError

    document = None
    if options.config_file:
        document = read_text_file(options.config_file)
        try:
            parse_config(document)
        except InputError as mistake:
            raise BadFile(options.config_file, mistake) from None
    machine = named_machine(options.topology) if options.topology else None
    return Instead(document, machine)
