"""The one object that owns the parts of the daemon."""

from __future__ import annotations

import argparse
import asyncio
import os
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

import attrs

from nri_resmgr.app.background.hotplug import HotplugFollower
from nri_resmgr.app.background.reconciler import PATIENCE, Reconciler
from nri_resmgr.app.background.supervisor import Supervisor
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.offers.node_offers import NodeOffers
from nri_resmgr.app.plugin.changes.rebalancing import Rebalancer
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.running.sandboxes import SandboxPins
from nri_resmgr.checkpoint.writer import CheckpointWriter
from nri_resmgr.daemon.claims_file import ClaimsFile
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.kubelet import KubeletServices
from nri_resmgr.daemon.memory_kinds import MemoryKinds
from nri_resmgr.daemon.observability import ObservabilityInForce
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.kubelet.pod_resources import PodResources
from nri_resmgr.kubelet.sockets import kubelet_dir
from nri_resmgr.stub import Stub
from nri_resmgr.stub.transport import SOCKET_VARIABLE
from nri_resmgr.topology import Machine

if TYPE_CHECKING:
    # Few nodes need an applier; see `nri_resmgr.daemon.targets`.
    from nri_resmgr.app.classes.blockio.files import BlockIoFiles
    from nri_resmgr.app.classes.limits.files import LimitFiles
    from nri_resmgr.app.classes.memory.top_tier import TopTierLimits
    from nri_resmgr.app.classes.rdt.groups import RdtGroups
    from nri_resmgr.app.host_settings.settings import HostSettings

    # See `nri_resmgr.daemon.services.verification`.
    from nri_resmgr.app.verification.verifier import Verification

    # Off by default, and needs the extra "kubelet".
    from nri_resmgr.daemon.dra import DraDriver

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
        top_tier: Limits of fast memory.
        limits: CPU and memory limits of adjusted containers.
    """

    def __init__(self) -> None:
        self.host: Reconciler[HostSettings] = Reconciler("host")
        self.rdt: Reconciler[RdtGroups] = Reconciler("rdt")
        self.blockio: Reconciler[BlockIoFiles] = Reconciler("blockio")
        self.top_tier: Reconciler[TopTierLimits] = Reconciler("top-tier")
        self.limits: Reconciler[LimitFiles] = Reconciler("limits")

    @property
    def observers(self) -> tuple[DecisionObserver, ...]:
        """The reconcilers as observers of decisions and configurations."""
        return (self.host, self.rdt, self.blockio, self.top_tier, self.limits)

    def close(self) -> None:
        """Restore the host; other files go with their containers' cgroups."""
        # Both at once: one that hangs takes no time of the other.
        waits = (self.host.begin_close(), self.rdt.begin_close())
        deadline = monotonic() + PATIENCE
        for wait in waits:
            wait(max(0.0, deadline - monotonic()))


@attrs.define(eq=False, repr=False)
class Daemon:
    """Owns the parts of the daemon, from the start of the process to its end.

    It is made before the policy, whose observers are among its parts, and is complete
    once `build` has added the policy and the stub. The last four parts are set by their
    services. The control socket reads parts by a `DaemonView`.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: The memory kinds set by the operator.
        machine: The model of the host at the start.
        state: The state directory; None for none.
        observers: Observers of sessions and decisions.
        recorder: The recorder of ``--record``; None without.
        launched: Whether the runtime started this process.
        reconcilers: Of host settings, RDT groups and block I/O files.
        observability: Log, metrics and traces in force.
        checkpoint_writer: Writes the state; None without state directory.
        rebalancer: Moves containers to better places periodically.
        offers: Extended resources of the node.
        sandboxes: Pins the sandboxes of virtual machines.
        pod_resources: What the kubelet has answered; None where it is not asked.
        kubelet_services: The kubelet's sockets.
        supervisor: Runs all services.
        control_tried: Set once the control socket listens, or cannot.
        configuration: Offers documents to the policy; set by `build`.
        stub: The sessions with the runtime; set by `build`.
        claims_file: Keeps claims of other CPU drivers; None without state directory.
        kubelet: The kubelet's conflicting managers at the last check.
        verification: Compares cgroups with decisions; None where it is off.
        hotplug: Follows CPUs and memory that come or go; None before it begins.
        dra: The DRA driver; None while it is not served.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    machine: Machine
    state: StateDir | None
    observers: DaemonObservers
    recorder: Recorder | None = None
    launched: bool = attrs.field(factory=_was_launched)
    reconcilers: Reconcilers = attrs.field(factory=Reconcilers, init=False)
    observability: ObservabilityInForce = attrs.field(init=False)
    checkpoint_writer: CheckpointWriter | None = attrs.field(init=False)
    rebalancer: Rebalancer = attrs.field(factory=Rebalancer, init=False)
    offers: NodeOffers = attrs.field(factory=NodeOffers, init=False)
    sandboxes: SandboxPins = attrs.field(factory=SandboxPins, init=False)
    pod_resources: PodResources | None = attrs.field(init=False)
    kubelet_services: KubeletServices = attrs.field(init=False)
    supervisor: Supervisor = attrs.field(init=False)
    control_tried: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # The policy is given the parts above.
    configuration: DaemonConfiguration = attrs.field(init=False)
    stub: Stub = attrs.field(init=False)
    claims_file: ClaimsFile | None = attrs.field(default=None, init=False)
    # Set by their services.
    kubelet: tuple[KubeletManager, ...] = attrs.field(default=(), init=False)
    verification: Verification | None = attrs.field(default=None, init=False)
    hotplug: HotplugFollower | None = attrs.field(default=None, init=False)
    dra: DraDriver | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        folder = kubelet_dir(self.options.kubelet_dir)
        self.pod_resources = None if folder is None else PodResources()
        self.kubelet_services = KubeletServices(folder)
        self.observability = ObservabilityInForce(self.options, self.observers)
        self.checkpoint_writer = (
            None if self.state is None else CheckpointWriter(self.state)
        )
        # The runtime would not launch it again.
        self.supervisor = Supervisor(may_end=not self.launched)

    @property
    def policy(self) -> ResourcePolicy:
        """The plugin."""
        return self.configuration.policy

    def close(self) -> None:
        """Write the last state, and restore the host."""
        # A stack calls the last one first, and the others even if one fails.
        with ExitStack() as stack:
            if self.recorder is not None:
                stack.callback(self.recorder.close)
            stack.callback(self.reconcilers.close)
            # The state comes first: the host may hang, and its changes are in journals.
            if self.checkpoint_writer is not None:
                stack.callback(self.checkpoint_writer.close)
            if self.claims_file is not None:
                stack.callback(self.claims_file.close)
