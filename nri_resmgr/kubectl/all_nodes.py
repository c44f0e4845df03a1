"""Runs something for the daemons of all nodes, side by side."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from nri_resmgr.kubectl.client import NAME
from nri_resmgr.kubectl.daemons import Daemon
from nri_resmgr.kubectl.errors import PluginError

_Found = TypeVar("_Found")

# Each is a process and a connection; the API server serves hundreds.
_AT_A_TIME: Final = 8


def on_all(
    daemons: Mapping[str, Daemon | PluginError], run: Callable[[Daemon], _Found]
) -> dict[str, _Found | PluginError]:
    """Run it for each daemon; return by node what it returned, or why it did not."""

    def one(daemon: Daemon | PluginError) -> _Found | PluginError:
        if isinstance(daemon, PluginError):
            return daemon
        try:
            return run(daemon)
        except PluginError as error:
            return error

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return dict(zip(daemons, pool.map(one, daemons.values()), strict=True))


def report_failures(found: Mapping[str, object], *, any_node: bool = False) -> int:
    """Print the errors of nodes, a line each.

    Args:
        found: What `on_all` returned.
        any_node: Whether errors do not count if one node has none.

    Returns:
        0, or the exit status of the first node that failed.
    """
    failed = {
        node: error for node, error in found.items() if isinstance(error, PluginError)
    }
    if any_node and len(failed) < len(found):
        return 0
    for node, error in failed.items():
        print(f"{NAME}: node {node}: {error}", file=sys.stderr)
    return next((error.status for error in failed.values()), 0)
