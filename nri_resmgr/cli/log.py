"""``nri-resmgr log``: show or set the levels of the daemon's log."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.output import add_client_flags, is_document, print_document
from nri_resmgr.cli.tables import format_table
from nri_resmgr.control.client import Client
from nri_resmgr.values.documents import JsonObject

_EXAMPLES: Final = """\
examples:
  nri-resmgr log                         show the levels
  nri-resmgr log debug                   log everything
  nri-resmgr log debug stub 'policy.*'   log more of some components
  nri-resmgr log info                    log as at the start
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = "Show the log levels, or set those of some components."
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "level",
        nargs="?",
        metavar="LEVEL",
        help="level to set: debug, info, warning or error",
    )
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="components to set it for, such as stub or 'app.*'; default all",
    )
    add_client_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Set levels, if one is given, and print the levels in force."""
    client = Client(options.control_socket)
    answer: JsonObject = {}
    if options.level:
        for pattern in options.patterns or ("*",):
            rule = {"pattern": pattern, "level": options.level}
            answer = client.put("/v1/log", rule)
    answer = answer or client.get("/v1/log")
    if is_document(options.output):
        print_document(answer, options.output)
    else:
        print("\n".join(_lines(answer["levels"])))
    return 0


def _lines(levels: JsonObject) -> Iterator[str]:
    if levels["debugAll"]:
        yield "all components are at debug until the next SIGUSR1"
    yield format_table(("pattern", "level"), levels["rules"].items())
    yield ""
    yield format_table(("component", "level"), levels["components"].items())
