"""``nri-resmgr reload``: make the daemon read its configuration file again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from nri_resmgr.cli.flags import Flags, add_control_flag
from nri_resmgr.control.client import Client


def add_arguments(
    parser: argparse.ArgumentParser, environment: Mapping[str, str]
) -> None:
    """Describe the command; *environment* gives defaults."""
    parser.description = (
        "Make the daemon read its configuration file again, and show the result."
    )
    add_control_flag(Flags(parser, environment))


def run(options: argparse.Namespace) -> int:
    """Request a reload; the daemon's refusal is an error."""
    client = Client(options.control_socket)
    client.post("/v1/reload")
    found = client.get("/v1/state")["configuration"]
    source = f"{found['source']} {found['name']}".strip()
    print(f"{found['kind']} from {source}, generation {found['generation']}")
    return 0
