"""``nri-resmgr status``: how the daemon is, and what its node has."""

from __future__ import annotations

import argparse
import json

from nri_resmgr.cli.render_status import render_status
from nri_resmgr.control.client import Client


def status(options: argparse.Namespace) -> int:
    """Ask and print."""
    state = Client(options.control_socket).get("/v1/state")
    if options.output == "json":
        print(json.dumps(state, indent=2))
    else:
        print(render_status(state))
    return 0
