"""What a running daemon is made of, for those who serve beside the request path."""

from __future__ import annotations

import argparse
from typing import Any

import attrs

from nri_resmgr.app.reconcilers import Reconcilers
from nri_resmgr.daemon.memory_kinds import MemoryKinds
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub import Stub


@attrs.define(eq=False, repr=False)
class Daemon:
    """The parts, once the runtime knows us.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: What its memory is made of, where the operator says so.
        policy: The `ResourcePolicy`; its class is imported late.
        configuration: The `DaemonConfiguration`: where documents come from.
        stub: The sessions with the runtime.
        watch: Who is told of sessions and decisions.
        keeper: The `Keeper` that writes the state; None where nothing is kept.
        kubelet: Each `KubeletManager` that is in the way; looked for now and then.
        state: The state directory; None where nothing is kept.
        reconcilers: Of host settings, RDT groups and block I/O files.
        verification: Compares the kernel's word with what was decided; None where it
            is off.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    policy: Any
    configuration: Any
    stub: Stub
    watch: Watch
    keeper: Any = None
    state: StateDir | None = None
    reconcilers: Reconcilers = attrs.field(factory=Reconcilers)
    kubelet: tuple[Any, ...] = ()
    verification: Any = None
