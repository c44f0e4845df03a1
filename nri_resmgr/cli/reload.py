"""``nri-resmgr reload``: the configuration file is read again."""

from __future__ import annotations

import argparse

from nri_resmgr.control.client import Client


def reload(options: argparse.Namespace) -> int:
    """Have it done; the daemon's refusal is an error."""
    client = Client(options.control_socket)
    client.post("/v1/reload")
    found = client.get("/v1/state")["configuration"]
    where = f"{found['source']} {found['name']}".strip()
    print(f"{found['kind']} from {where}, generation {found['generation']}")
    return 0
