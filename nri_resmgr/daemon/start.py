"""What is read before the policy is built."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import attrs

from nri_resmgr.daemon.checkpoint_writer import Keeper
from nri_resmgr.daemon.memory_kinds import MemoryKinds
from nri_resmgr.daemon.reconcilers import Reconcilers
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub.transport import SOCKET_VARIABLE
from nri_resmgr.topology import Machine

if TYPE_CHECKING:
    # It imports how recordings are read and compared; few starts record.
    from nri_resmgr.recordings.recorder import Recorder


def _was_launched() -> bool:
    return SOCKET_VARIABLE in os.environ  # until the stub removes it


@attrs.define(eq=False, repr=False)
class Start:
    """The parts from which the policy is built.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: What its memory is made of, where the operator says so.
        machine: The host's, as it was at the start.
        state: The state directory; None where nothing is kept.
        watch: Observes sessions and decisions.
        recorder: The recorder of ``--record``; None without.
        launched: Whether the runtime started this process.
        keeper: Writes the state; None where nothing is kept.
        reconcilers: Of host settings, RDT groups and block I/O files.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    machine: Machine
    state: StateDir | None
    watch: Watch
    recorder: Recorder | None = None
    launched: bool = attrs.field(factory=_was_launched)
    checkpoint_writer: Keeper | None = attrs.field(init=False)
    reconcilers: Reconcilers = attrs.field(factory=Reconcilers, init=False)

    def __attrs_post_init__(self) -> None:
        self.checkpoint_writer = None if self.state is None else Keeper(self.state)

    def close(self) -> None:
        """Set the host back and write what is not written yet."""
        self.reconcilers.close()
        for part in (self.checkpoint_writer, self.recorder):
            if part is not None:
                part.close()
