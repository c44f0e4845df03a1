"""What the daemon's own interface shows of its parts."""

from __future__ import annotations

from nri_resmgr.app.configuration.status import Setting
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.log.levels import levels


def daemon_view_of(daemon: Daemon) -> DaemonView:
    """Return the view of a daemon that its clients have."""
    return DaemonView(
        policy=daemon.policy,
        history=daemon.observers.history,
        sessions=daemon.observers.sessions,
        tree=daemon.tree,
        runtime=lambda: daemon.stub.runtime,
        plugin=str(daemon.stub.identity),
        started=daemon.observers.started,
        levels=levels,
        configuration=lambda: daemon.policy.configuration.status,
        reload=daemon.configuration.reload,
        kubelet=lambda: daemon.kubelet,
        kubelet_services=daemon.kubelet_services.uses,
        verification=lambda: daemon.verification,
        checkpoints=daemon.checkpoint_writer,
        host=daemon.reconcilers.host,
        parts=lambda: daemon.supervisor.parts,
        settings=lambda: _settings_of(daemon),
        dra=lambda: daemon.dra,
        cluster=daemon.configuration.cluster,
        offers=daemon.offers,
        sandboxes=daemon.sandboxes.statuses,
    )


def _settings_of(daemon: Daemon) -> tuple[Setting, ...]:
    found = daemon.observability.present.settings
    return (*found, daemon.recorder.setting) if daemon.recorder else found
