"""The parts of the daemon that the control socket reads and calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from nri_resmgr.app.background.reconciler import Reconciler
from nri_resmgr.app.configuration.status import ConfigurationStatus
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.sessions import SessionTracker
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.verification.verifier import Verification
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.host.tree import Tree
from nri_resmgr.stub.runtime_info import RuntimeInfo

if TYPE_CHECKING:  # heavy; few nodes have host settings
    from nri_resmgr.app.host_settings.settings import HostSettings

API_VERSION: Final = "control.nri/v1"
"""Part of every answer; a field that changes its meaning requires another version."""


class AdjustableLevels(Protocol):
    """The levels of the log."""

    def as_data(self) -> Mapping[str, object]:
        """Return all levels as JSON data."""

    def set(self, pattern: str, level: str) -> None:
        """Set the level of components that match a pattern."""


class Checkpoints(Protocol):
    """Counters of the checkpoint writer."""

    writes: int
    failures: int
    last_size: int
    last_seconds: float
    is_failing: bool


def _none() -> None:
    """Return None: the part is off."""


@attrs.define(eq=False, repr=False, kw_only=True)
class DaemonView:
    """The parts of a running daemon. Parts that are replaced later are callables.

    Attributes:
        policy: The plugin: policy, state, machine and pending updates.
        history: Recent events.
        sessions: The sessions with the runtime.
        tree: The files of the host.
        runtime: Returns the runtime's name and version.
        plugin: The registered name: ``90-resource-policy``.
        started: When the process began, UNIX nanoseconds.
        dry_run: Whether containers are left unchanged.
        levels: The levels of the log.
        configuration: Returns the configuration in force and the last rejected one.
        reload: Reads the configuration again; returns when it is in force.
        kubelet: Returns the kubelet's managers that write the same cgroup files.
        verification: Returns what compares cgroups with decisions; None if it is off.
        checkpoints: Returns the checkpoint writer; None without a state folder.
        host: Reconciles settings of the host; None if it is off.
    """

    policy: ResourcePolicy
    history: History
    sessions: SessionTracker
    tree: Tree
    runtime: Callable[[], RuntimeInfo]
    plugin: str
    started: int
    dry_run: bool
    levels: AdjustableLevels
    configuration: Callable[[], ConfigurationStatus]
    reload: Callable[[], Awaitable[None]]
    kubelet: Callable[[], Sequence[KubeletManager]]
    verification: Callable[[], Verification | None] = _none
    checkpoints: Callable[[], Checkpoints | None] = _none
    host: Reconciler[HostSettings] | None = None
