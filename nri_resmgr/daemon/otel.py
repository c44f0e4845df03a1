"""What a collector of OpenTelemetry is sent of this process."""

from __future__ import annotations

import os

from nri_resmgr.version import our_version


def facts() -> dict[str, str]:
    """Return attributes of the process; OpenTelemetry's variables override them."""
    found = {"service.name": "nri-resmgr", "service.version": our_version()}
    if node := os.environ.get("NODE_NAME"):
        found["k8s.node.name"] = node
    return found
