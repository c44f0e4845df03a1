"""The control socket as the daemon serves it."""

from __future__ import annotations

from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.http import serve
from nri_resmgr.control.listener import control_socket
from nri_resmgr.control.routes import site_of
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.log import Logger
from nri_resmgr.log.levels import levels

log = Logger(__name__)


async def serve_control(daemon: Daemon, path: str) -> None:
    """Serve the control socket at *path* until cancelled.

    Raises:
        ControlSocketUnusable: The socket cannot be created.
        UntrustedState: Other users may write to its folder.
    """
    with control_socket(path) as listener:
        log.info("control.listening", socket=path)
        await serve(site_of(_daemon_view_of(daemon)), listener)


def _daemon_view_of(daemon: Daemon) -> DaemonView:
    return DaemonView(
        policy=daemon.policy,
        history=daemon.observers.history,
        sessions=daemon.observers.sessions,
        tree=daemon.tree,
        runtime=lambda: daemon.stub.runtime,
        plugin=str(daemon.stub.identity),
        started=daemon.observers.started,
        dry_run=daemon.options.dry_run,
        levels=levels,
        configuration=lambda: daemon.configuration.status,
        reload=daemon.configuration.reload,
        kubelet=lambda: daemon.kubelet,
        verification=lambda: daemon.verification,
        checkpoints=lambda: daemon.checkpoint_writer,
        host=daemon.reconcilers.host,
    )
