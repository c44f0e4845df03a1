"""Liveness and readiness of the daemon over HTTP, on a port of their own."""

from __future__ import annotations

from nri_resmgr.daemon.health import liveness_problem, readiness_problem
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.process.health import Probes, serve_probes


async def serve_daemon_probes(daemon: Daemon) -> None:
    """Serve ``--health-endpoint`` until cancelled."""
    await serve_probes(probes_of(daemon), daemon.options.health_endpoint)


def probes_of(daemon: Daemon) -> Probes:
    """Return the probes of a daemon."""
    requests, sessions = daemon.observers.metrics, daemon.observers.sessions
    return Probes(
        lambda heartbeat: liveness_problem(heartbeat, requests, daemon.supervisor),
        lambda: readiness_problem(sessions.state, sessions.ended_why),
    )
