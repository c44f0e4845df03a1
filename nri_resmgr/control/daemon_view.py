"""The parts of the daemon that the control socket reads and calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from nri_resmgr.app.background.reconciler import Reconciler
from nri_resmgr.app.background.supervisor import Part
from nri_resmgr.app.configuration.status import ConfigurationStatus, Setting
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.sessions import SessionTracker
from nri_resmgr.app.offers.node_offers import NodeOffers
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.app.running.sandboxes import SandboxStatus
from nri_resmgr.app.verification.verifier import Verification
from nri_resmgr.control.dra import Driver
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.host.tree import Tree
from nri_resmgr.kubelet.sockets import KubeletService
from nri_resmgr.log.levels import LogLevels
from nri_resmgr.stub.runtime_info import RuntimeInfo

if TYPE_CHECKING:  # few nodes have any
    from nri_resmgr.app.configuration.cluster import ClusterStatus
    from nri_resmgr.app.host_settings.settings import HostSettings

API_VERSION: Final = "control.nri/v1"
"""Part of every answer; a field that changes its meaning requires another version."""


class Checkpoints(Protocol):
    """Counters of the checkpoint writer."""

    writes: int
    failures: int
    last_size: int
    last_seconds: float
    is_failing: bool


class Cluster(Protocol):
    """The documents of the cluster, and the agent that hands them over."""

    @property
    def owner(self) -> int | None:
        """The agent's user; None if unknown."""

    @property
    def status(self) -> ClusterStatus:
        """The folder, the agent, and the verdicts."""

    def hear(
        self, version: str, node: str, contact: float | None, problem: str
    ) -> None:
        """Note a report of the agent; *contact* is in seconds before now."""


class KubeletUse(Protocol):
    """The use of a service of the kubelet."""

    @property
    def service(self) -> KubeletService:
        """The service."""

    @property
    def problem(self) -> str:
        """Why it is not in use; empty while it answers."""

    @property
    def details(self) -> Callable[[], str]:
        """Returns what is known by it."""


class Reload(Protocol):
    """Reads the configuration again; returns when it is in force."""

    def __call__(self, *, force: bool) -> Awaitable[None]:
        """Reload; *force* permits it to take exclusive CPUs from containers."""


def _none() -> None:
    """Return None: the part is off."""


@attrs.define(eq=False, repr=False, kw_only=True)
class DaemonView:
    """The parts of a running daemon that the control socket reads.

    This package cannot import the object that owns them, which composes it with others.
    Parts that are replaced later are callables.

    Attributes:
        policy: The policy in force, its state, and pending updates.
        runtime: Returns the runtime's name and version.
        plugin: The registered name: ``90-resource-policy``.
        started: When the process began, UNIX nanoseconds.
        configuration: Returns the configuration in force and the last rejected one.
        reload: Reads the configuration again.
        kubelet: Returns the kubelet's managers that write the same cgroup files.
        kubelet_services: The uses of the kubelet's sockets.
        verification: Returns what compares cgroups with decisions; None if it is off.
        checkpoints: The checkpoint writer; None without a state folder.
        host: Reconciles settings of the host; None if it is off.
        parts: Returns the supervised parts.
        settings: Returns what of log, metrics and traces is set, and where.
        dra: Returns the DRA driver; None while it does not serve.
        cluster: The documents of the cluster; None without a spool folder.
        offers: Extended resources of the node.
        sandboxes: Returns where the sandboxes of virtual machines are.
    """

    policy: NodePolicy
    history: History
    sessions: SessionTracker
    tree: Tree
    runtime: Callable[[], RuntimeInfo]
    plugin: str
    started: int
    levels: LogLevels
    configuration: Callable[[], ConfigurationStatus]
    reload: Reload
    kubelet: Callable[[], Sequence[KubeletManager]]
    kubelet_services: Sequence[KubeletUse] = ()
    verification: Callable[[], Verification | None] = _none
    checkpoints: Checkpoints | None = None
    host: Reconciler[HostSettings] | None = None
    parts: Callable[[], Sequence[Part]] = tuple
    settings: Callable[[], Sequence[Setting]] = tuple
    dra: Callable[[], Driver | None] = _none
    cluster: Cluster | None = None
    offers: NodeOffers = attrs.field(factory=NodeOffers)
    sandboxes: Callable[[], Iterable[SandboxStatus]] = tuple
