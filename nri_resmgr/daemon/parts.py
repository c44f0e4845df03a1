"""What a running daemon is made of, for those who serve beside the request path."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import attrs

from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.daemon.checkpoint_writer import Keeper
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.memory_kinds import MemoryKinds
from nri_resmgr.daemon.reconcilers import Reconcilers
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub import Stub

if TYPE_CHECKING:
    # See `nri_resmgr.daemon.services.verification`.
    from nri_resmgr.app.verification.verifier import Verification


@attrs.define(eq=False, repr=False)
class Daemon:
    """The parts, once the runtime knows us.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: What its memory is made of, where the operator says so.
        policy: Decides.
        configuration: Where documents come from.
        stub: The sessions with the runtime.
        watch: Who is told of sessions and decisions.
        keeper: Writes the state; None where nothing is kept.
        kubelet: The managers that are in the way; looked for now and then.
        state: The state directory; None where nothing is kept.
        reconcilers: Of host settings, RDT groups and block I/O files.
        verification: Compares the kernel's word with what was decided; None where it
            is off.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    policy: ResourcePolicy
    configuration: DaemonConfiguration
    stub: Stub
    watch: Watch
    checkpoint_writer: Keeper | None = None
    state: StateDir | None = None
    reconcilers: Reconcilers = attrs.field(factory=Reconcilers)
    kubelet: tuple[KubeletManager, ...] = ()
    verification: Verification | None = None
