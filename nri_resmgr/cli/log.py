"""``nri-resmgr log``: the levels of the daemon's log."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from nri_resmgr.cli.tables import format_table
from nri_resmgr.control.client import Client


def log(options: argparse.Namespace) -> int:
    """Set levels, if one is given, and print what they are."""
    client = Client(options.control_socket)
    answer: dict[str, Any] = {}
    if options.level:
        for pattern in options.patterns or ("*",):
            rule = {"pattern": pattern, "level": options.level}
            answer = client.put("/v1/log", rule)
    levels = (answer or client.get("/v1/log"))["levels"]
    if options.output == "json":
        print(json.dumps(levels, indent=2))
    else:
        print("\n".join(_lines(levels)))
    return 0


def _lines(levels: dict[str, Any]) -> Iterator[str]:
    if levels["debugAll"]:
        yield "everything is at debug, until the next SIGUSR1"
    yield format_table(("pattern", "level"), levels["rules"].items())
    yield ""
    yield format_table(("component", "level"), levels["components"].items())
