"""What is known before the runtime hears of the daemon."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import attrs

from nri_resmgr.daemon.memory_kinds import MemoryKinds
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.tree import HostTree


@attrs.define(eq=False, repr=False)
class Start:
    """The parts that come first.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: What its memory is made of, where the operator says so.
        configuration: Gives the `DaemonConfiguration`, and with it the policy; they
            are built with the first call.
        watch: Who is told of sessions and decisions.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    configuration: Callable[[], Any]
    watch: Watch
