"""What the control socket answers about, and by what it acts."""

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

if TYPE_CHECKING:  # few nodes have any
    from nri_resmgr.app.host_settings.settings import HostSettings

API_VERSION: Final = "control.nri/v1"
"""In every answer; a field that changes its meaning makes it another version."""


class Levels(Protocol):
    """What can be asked and told about the log's levels."""

    def as_data(self) -> Mapping[str, object]:
        """Say what the levels are."""

    def set(self, pattern: str, level: str) -> None:
        """ContainerChange those of the components that a pattern fits."""


class Checkpoints(Protocol):
    """What writes the state."""

    writes: int
    failures: int
    last_size: int
    last_seconds: float
    is_failing: bool


def _nobody() -> None:
    """Give nobody who verifies or keeps anything."""


@attrs.define(eq=False, repr=False, kw_only=True)
class Subject:
    """A daemon, as much as can be asked.

    Attributes:
        policy: What decides, and what it has decided.
        history: What happened.
        sessions: With the runtime.
        tree: The host.
        runtime: Says who the runtime is.
        plugin: As which we are registered: ``90-resource-policy``.
        started: When the process began, UNIX nanoseconds.
        dry_run: Whether nothing is adjusted.
        levels: Those of the log.
        configuration: Says what is in force, and what was refused.
        reload: Reads the configuration again; returns when it is in force.
        kubelet: Says which of the kubelet's managers write what we write.
        verification: Gives what compares decisions with the kernel's word; None where
            nobody does.
        checkpoints: Gives what writes the state; None where none is kept.
        host: Reconciles settings of the host; None where nothing does.
    """

    policy: ResourcePolicy
    history: History
    sessions: SessionTracker
    tree: Tree
    runtime: Callable[[], RuntimeInfo]
    plugin: str
    started: int
    dry_run: bool
    levels: Levels
    configuration: Callable[[], ConfigurationStatus]
    reload: Callable[[], Awaitable[None]]
    kubelet: Callable[[], Sequence[KubeletManager]]
    verification: Callable[[], Verification | None] = _nobody
    checkpoints: Callable[[], Checkpoints | None] = _nobody
    host: Reconciler[HostSettings] | None = None
