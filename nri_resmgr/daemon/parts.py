"""The parts of a daemon: before the policy is built, and once it serves."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import attrs

from nri_resmgr.app.background.reconciler import Reconciler
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.daemon.checkpoint_writer import CheckpointWriter
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.memory_kinds import MemoryKinds
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub import Stub
from nri_resmgr.stub.transport import SOCKET_VARIABLE
from nri_resmgr.topology import Machine

if TYPE_CHECKING:
    # Few nodes need an applier; see `nri_resmgr.daemon.targets`.
    from nri_resmgr.app.classes.blockio.files import BlockIoFiles
    from nri_resmgr.app.classes.rdt.groups import RdtGroups
    from nri_resmgr.app.host_settings.settings import HostSettings

    # See `nri_resmgr.daemon.services.verification`.
    from nri_resmgr.app.verification.verifier import Verification

    # Few starts record.
    from nri_resmgr.recordings.recorder import Recorder


def _was_launched() -> bool:
    return SOCKET_VARIABLE in os.environ  # until the stub removes it


class Reconcilers:
    """All reconcilers; none has an applier at first.

    Attributes:
        host: CPU classes, Speed Select, interrupts and isolation.
        rdt: RDT groups.
        blockio: Block I/O of running containers.
    """

    def __init__(self) -> None:
        self.host: Reconciler[HostSettings] = Reconciler("host")
        self.rdt: Reconciler[RdtGroups] = Reconciler("rdt")
        self.blockio: Reconciler[BlockIoFiles] = Reconciler("blockio")

    @property
    def observers(self) -> tuple[DecisionObserver, ...]:
        """The reconcilers as observers of decisions and configurations."""
        return (self.host, self.rdt, self.blockio)

    def close(self) -> None:
        """Restore the host; block I/O files go with their containers' cgroups."""
        self.host.close()
        self.rdt.close()


@attrs.define(eq=False, repr=False)
class Startup:
    """The parts from which the policy is built.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: The memory kinds set by the operator.
        machine: The model of the host at the start.
        state: The state directory; None for none.
        observers: Observers of sessions and decisions.
        recorder: The recorder of ``--record``; None without.
        launched: Whether the runtime started this process.
        checkpoint_writer: Writes the state; None without state directory.
        reconcilers: Of host settings, RDT groups and block I/O files.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    machine: Machine
    state: StateDir | None
    observers: DaemonObservers
    recorder: Recorder | None = None
    launched: bool = attrs.field(factory=_was_launched)
    checkpoint_writer: CheckpointWriter | None = attrs.field(init=False)
    reconcilers: Reconcilers = attrs.field(factory=Reconcilers, init=False)

    def __attrs_post_init__(self) -> None:
        self.checkpoint_writer = (
            None if self.state is None else CheckpointWriter(self.state)
        )

    def close(self) -> None:
        """Restore the host, and write the last state."""
        self.reconcilers.close()
        for part in (self.checkpoint_writer, self.recorder):
            if part is not None:
                part.close()


@attrs.define(eq=False, repr=False)
class Daemon:
    """The parts of a registered plugin, for its services.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: The memory kinds set by the operator.
        policy: The plugin.
        configuration: Offers documents to the policy.
        stub: The sessions with the runtime.
        observers: Observers of sessions and decisions.
        checkpoint_writer: Writes the state; None without state directory.
        kubelet: The kubelet's conflicting managers at the last check.
        state: The state directory; None for none.
        reconcilers: Of host settings, RDT groups and block I/O files.
        verification: Compares cgroups with decisions; None where it is off.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    policy: ResourcePolicy
    configuration: DaemonConfiguration
    stub: Stub
    observers: DaemonObservers
    checkpoint_writer: CheckpointWriter | None = None
    state: StateDir | None = None
    reconcilers: Reconcilers = attrs.field(factory=Reconcilers)
    kubelet: tuple[KubeletManager, ...] = ()
    verification: Verification | None = None
