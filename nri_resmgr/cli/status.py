"""``nri-resmgr status``: the state of the daemon and of its node."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from nri_resmgr.cli.flags import Flags, add_control_flag, add_output
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.client import Client


def add_arguments(
    parser: argparse.ArgumentParser, environment: Mapping[str, str]
) -> None:
    """Describe the command; *environment* gives defaults."""
    parser.description = (
        "Show the state of the daemon, and which CPUs and memory are granted and free."
    )
    parser.epilog = "examples: status; status -o json | jq .nodes"
    add_control_flag(Flags(parser, environment))
    add_output(parser, "text", "json")


def run(options: argparse.Namespace) -> int:
    """Query the daemon and print its state."""
    state = Client(options.control_socket).get("/v1/state")
    if options.output == "json":
        print(json.dumps(state, indent=2))
    else:
        print(render_status(state))
    return 0
