"""``nri-resmgr check``: whether documents are right, and what would come of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nri_resmgr.cli.flags import Commands, Flags, Help, add_output
from nri_resmgr.cli.run_flags import add_host_flags

_BAD_INPUT: Final = 2  # the exit status
_STANDARD_INPUT: Final = Path("-")

_EXAMPLES: Final = """\
examples:
  nri-resmgr check my.yaml                         against this machine
  nri-resmgr check --topology 2s2n8c2t conf.d/*    against a made-up one
  nri-resmgr check --topology node7.tgz my.yaml    against another one, by its dump
  kubectl get topologyawarepolicy default -o yaml | nri-resmgr check -

A file is one document, as for `run`. Every mistake is one line: file, path, sentence.

exit status: 0 all are right; 1 the machine cannot be read; 2 there are mistakes
"""


def add_check(commands: Commands, environment: Mapping[str, str]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "check",
        help="say whether configurations are right, and what would come of them",
        description="Judge configurations as the daemon would, for this machine or "
        "another one, and show the pools or balloons that they make.",
        epilog=_EXAMPLES,
        formatter_class=Help,
    )
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a document; - is standard input",
    )
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="a made-up machine such as 2s2n4c2t, or a file of `topology dump`; "
        "default is this machine",
    )
    add_host_flags(Flags(parser, environment))
    add_output(parser, "table", "json")
    parser.set_defaults(command=check)


def check(options: argparse.Namespace) -> int:
    """Judge each file, and show what is to be said of it.

    Raises:
        ResmgrError: The machine cannot be read.
    """
    # Late: other commands need none of it.
    from nri_resmgr.cli.checked import Checker, show_as_json, show_as_text
    from nri_resmgr.cli.chosen_machine import named_machine, this_machine
    from nri_resmgr.host.tree import HostTree

    if options.topology:
        checker = Checker(named_machine(options.topology))
    else:
        checker = Checker(this_machine(options), HostTree(options.host_root))
    found = [checker.check(*_read(path)) for path in options.files]
    print((show_as_json if options.output == "json" else show_as_text)(found))
    return 0 if all(one.is_right for one in found) else _BAD_INPUT


def _read(path: Path) -> tuple[str, Any]:
    """Return a file's name, and its text or why there is none."""
    from nri_resmgr.host.text_file import UnreadableFile, read_text_file

    if path == _STANDARD_INPUT:
        return "standard input", sys.stdin.buffer.read().decode(
            "utf-8", "surrogateescape"
        )
    try:
        return str(path), read_text_file(path)
    except UnreadableFile as error:
        return str(path), error
