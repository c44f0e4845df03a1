"""``nri-resmgr events``: what happened, and what goes on."""

from __future__ import annotations

import argparse
import json

from nri_resmgr.cli.render_events import event_line
from nri_resmgr.control.client import AnswerLost, Client


def events(options: argparse.Namespace) -> int:
    """Print a line per event.

    Raises:
        AnswerLost: The daemon ended while it was followed.
    """
    path, follow = options.control_socket, "1" if options.follow else "0"
    lines = Client(path).lines("/v1/events", since=str(options.since), follow=follow)
    for line in lines:
        if options.output == "json":
            print(json.dumps(line), flush=True)
        elif line["kind"] != "EventList":
            print(event_line(line), flush=True)
    if options.follow:
        raise AnswerLost(path, "the daemon has ended")
    return 0
