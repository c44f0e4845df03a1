"""``nri-resmgr status``: the state of the daemon and of its node."""

from __future__ import annotations

import argparse
from typing import Final

from nri_resmgr.cli.flags import STDOUT, Parser, add_picture_flag
from nri_resmgr.cli.look import look_of_output
from nri_resmgr.cli.output import add_client_flags, is_document, print_document
from nri_resmgr.cli.streams import write_unfiltered
from nri_resmgr.control.client import Client
from nri_resmgr.values.printable import printable, printable_data

_EXAMPLES: Final = """\
examples:
  nri-resmgr status                        grants, and what is free
  nri-resmgr status -n shop                containers of one namespace only
  nri-resmgr status -o wide                all columns
  nri-resmgr status -o json | jq .nodes    a part of it, for programs
  nri-resmgr status --picture node.svg     its CPUs and their holders, as a picture, too
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Show the state of the daemon, and which CPUs and memory are granted and free."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "-n",
        "--namespace",
        default="",
        metavar="NAMESPACE",
        help="show containers of this namespace only; default all",
    )
    add_picture_flag(parser, "the CPUs and their containers", or_stdout=True)
    add_client_flags(parser, wide="columns of pools and containers")


def run(options: argparse.Namespace) -> int:
    """Query the daemon and print its state."""
    client = Client(options.control_socket)
    state, namespace = client.get("/v1/state"), options.namespace
    # Late: neither a help page nor a daemon that does not answer needs them.
    from nri_resmgr.cli.render_status import of_namespace, render_status

    if options.picture:
        # Late: without a picture the machine and its model are not needed.
        from nri_resmgr.cli.output_files import write_picture
        from nri_resmgr.control.node_picture import picture_of_state
        from nri_resmgr.topology.document import from_document

        # Of the whole state: containers of other namespaces have CPUs, too.
        machine = from_document(client.get("/v1/topology")["machine"])
        picture = picture_of_state(state, machine)
        write_picture(picture, options.picture)
        if options.picture == STDOUT:
            return 0
    if is_document(options.output):
        shown = of_namespace(state, namespace) if namespace else state
        print_document(shown, options.output)
        return 0
    text = render_status(
        printable_data(state),
        look_of_output(),
        is_wide=options.output == "wide",
        namespace=printable(namespace),
    )
    write_unfiltered(f"{text}\n")  # it has colours
    return 0
