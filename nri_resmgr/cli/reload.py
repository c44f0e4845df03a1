"""``nri-resmgr reload``: make the daemon read its configuration file again."""

from __future__ import annotations

import argparse
from typing import Final

from nri_resmgr.cli.flags import Parser, add_control_flag
from nri_resmgr.cli.state_texts import pending_text
from nri_resmgr.control.client import Client
from nri_resmgr.values.printable import printable_data

_EXAMPLES: Final = """\
examples:
  nri-resmgr reload            read the file; a SIGHUP does the same
  nri-resmgr reload --force    even if containers lose exclusive CPUs
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Make the daemon read its configuration file again, and show the result: the "
        "configuration that is decided, and how many containers wait for its values."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--force",
        action="store_true",
        help="let it take exclusive CPUs from running containers, as with "
        "allowLoss: true in the document",
    )
    add_control_flag(parser)


def run(options: argparse.Namespace) -> int:
    """Request a reload; the daemon's refusal is an error."""
    client = Client(options.control_socket)
    reloaded = client.post("/v1/reload", **({"force": "1"} if options.force else {}))
    found = printable_data(client.get("/v1/state")["configuration"])
    source = f"{found['source']} {found['name']}".strip()
    print(
        f"{found['kind']} from {source}, generation {reloaded['generation']}: decided"
    )
    print(pending_text(reloaded) or "in force: no update is pending")
    return 0
