"""Metrics and health over HTTP, read-only."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.app.host_settings.wanted import use_in_force
from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.of_host import (
    series_of_classes,
    series_of_host,
    series_of_rdt_counters,
    series_of_verification,
)
from nri_resmgr.app.metrics.of_process import series_of_process
from nri_resmgr.app.metrics.of_state import series_of_state
from nri_resmgr.app.metrics.text import CONTENT_TYPE, Series, render, single
from nri_resmgr.control.http import (
    ClientLimits,
    HttpReply,
    HttpRequest,
    Routes,
    Site,
    serve,
    text_reply,
)
from nri_resmgr.daemon.checkpoint_writer import CheckpointWriter
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.endpoint import EndpointTaken, HttpEndpoint, read_endpoint
from nri_resmgr.daemon.health import Heartbeat, liveness_problem, readiness_problem
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.log import Logger
from nri_resmgr.log.output import lost_lines
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.version import our_version

log = Logger(__name__)

# Prometheus and the kubelet send a few requests per minute.
LIMITS: Final = ClientLimits(head=8 << 10, body=0, connections=16, seconds=5.0)

_PAUSE: Final = 5.0  # seconds between attempts to listen


async def serve_insight(daemon: Daemon) -> None:
    """Serve ``--http-endpoint`` until cancelled.

    While the port is in use, retry: a rolling update runs two instances for a moment.
    """
    endpoint = read_endpoint(daemon.options.http_endpoint)
    insight = Insight(daemon)
    site = Site(insight.routes, LIMITS)
    listener = await _listening(endpoint)
    # The kernel has replaced port 0 by a free one.
    found = msgspec.structs.replace(endpoint, port=listener.getsockname()[1])
    log.info("http.listening", endpoint=str(found))
    async with asyncio.TaskGroup() as group:
        group.create_task(insight.heartbeat.beat())
        group.create_task(serve(site, listener))


async def _listening(endpoint: HttpEndpoint) -> socket.socket:
    is_logged = False
    while True:
        try:
            return endpoint.listen()
        except EndpointTaken as error:
            if not is_logged:
                log.warning("http.not-listening", why=str(error), again_in=_PAUSE)
            is_logged = True
        await asyncio.sleep(_PAUSE)


class Insight:
    """The handlers of all paths.

    Attributes:
        heartbeat: Measures the lag of the event loop; its `beat` has to run.
        routes: The handlers.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        if daemon.observers.metrics is None:
            raise TypeError("the daemon was started without counters")
        self._counters = daemon.observers.metrics
        self.heartbeat = Heartbeat()
        self.routes: Routes = {
            ("GET", "/metrics"): self._metrics,
            ("GET", "/healthz"): self._healthz,
            ("GET", "/readyz"): self._readyz,
        }

    def series(self) -> Iterator[Series]:
        """Yield all series of `nri_resmgr.app.metrics.table`."""
        daemon = self._daemon
        yield from self._counters.series()
        yield from _of_updates(daemon.policy.updates)
        yield from _of_configuration(daemon.configuration)
        if daemon.checkpoint_writer is not None:
            yield from _of_checkpoints(daemon.checkpoint_writer)
        if daemon.verification is not None:
            yield from series_of_verification(daemon.verification)
        yield from _of_host(daemon)
        yield from _of_classes(daemon)
        managers = {(one.kind, one.policy): 1 for one in daemon.kubelet}
        yield Series(table.KUBELET, managers)
        names = daemon.options.metrics_per_container
        yield from series_of_state(daemon.policy, daemon.tree, per_container=names)
        yield from series_of_process(our_version(), daemon.stub.runtime)
        yield single(table.STARTED, daemon.observers.started / 1e9)
        yield single(table.LINES_LOST, lost_lines())
        yield single(table.LOOP_LAG, self.heartbeat.lag)
        yield single(table.LOOP_LAG_MAX, self.heartbeat.worst_lag)

    async def _metrics(self, _: HttpRequest) -> HttpReply:
        parts: list[str] = []
        for one in self.series():
            parts.append(render([one]))
            await asyncio.sleep(0)  # requests of the runtime go first
        if self._daemon.policy.config.rdt is not None:
            host = self._daemon.policy.class_hosts.rdt
            parts.append(render(await asyncio.to_thread(series_of_rdt_counters, host)))
        return HttpReply("".join(parts).encode(), CONTENT_TYPE)

    def _healthz(self, _: HttpRequest) -> HttpReply:
        return _verdict(liveness_problem(self.heartbeat, self._counters))

    def _readyz(self, _: HttpRequest) -> HttpReply:
        sessions = self._daemon.observers.sessions
        return _verdict(readiness_problem(sessions.state, sessions.lost_why))


def _of_classes(daemon: Daemon) -> Iterator[Series]:
    config = daemon.policy.config
    kinds = (config.rdt, config.blockio, config.memory_qos, config.memory_policy)
    if any(one is not None for one in kinds):
        yield from series_of_classes(daemon.policy, daemon.policy.class_hosts)


def _verdict(why_not: str) -> HttpReply:
    return text_reply(f"{why_not}\n", 503) if why_not else text_reply("ok\n")


def _of_updates(updates: UpdateSender) -> Iterator[Series]:
    sent, failed = updates.sent, updates.failed
    yield Series(table.UNSOLICITED, {("taken",): sent, ("failed",): failed})
    yield single(table.PENDING_UPDATES, len(updates.pending))
    yield single(table.PENDING_UPDATES_OLDEST, updates.pending.oldest_seconds)


def _of_configuration(configuration: DaemonConfiguration) -> Iterator[Series]:
    status = configuration.status
    yield single(table.GENERATION, status.generation)
    yield single(table.CONFIGURED, status.accepted)
    yield single(table.CONFIGURATION_OK, int(status.error is None))
    yield single(table.CONFIGURATIONS_REJECTED, status.rejected)


def _of_host(daemon: Daemon) -> Iterator[Series]:
    yield from series_of_host(use_in_force(daemon.policy), daemon.reconcilers.host)


def _of_checkpoints(writer: CheckpointWriter) -> Iterator[Series]:
    yield single(table.CHECKPOINTS, writer.writes)
    yield single(table.CHECKPOINT_FAILURES, writer.failures)
    yield single(table.CHECKPOINT_BYTES, writer.last_size)
    yield single(table.CHECKPOINT_SECONDS, writer.last_seconds)
