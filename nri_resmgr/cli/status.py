"""``nri-resmgr status``: the state of the daemon and of its node."""

from __future__ import annotations

import argparse
import json
from typing import Final

from nri_resmgr.cli.flags import Parser, add_client_flags, add_picture_flag
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.client import Client
from nri_resmgr.values.printable import printable_data, printable_json

_EXAMPLES: Final = """\
examples:
  nri-resmgr status                        grants, and what is free
  nri-resmgr status -o json | jq .nodes    a part of it, for programs
  nri-resmgr status --picture node.svg     its CPUs and who has them, as a picture, too
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Show the state of the daemon, and which CPUs and memory are granted and free."
    )
    parser.epilog = _EXAMPLES
    add_picture_flag(parser, "the CPUs and their containers")
    add_client_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Query the daemon and print its state."""
    client = Client(options.control_socket)
    state = client.get("/v1/state")
    if options.picture:
        # Late: without a picture the machine and its model are not needed.
        from nri_resmgr.cli.output_files import write_picture
        from nri_resmgr.cli.pictures_of_daemon import picture_of_state

        picture = picture_of_state(state, client.get("/v1/topology"))
        write_picture(picture, options.picture)
    if options.output == "json":
        print(printable_json(json.dumps(state, indent=2)))
    else:
        print(render_status(printable_data(state)))
    return 0
