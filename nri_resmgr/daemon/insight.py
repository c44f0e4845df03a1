"""Metrics and health over HTTP, for those who may only look."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from nri_resmgr.app.metrics import table
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
from nri_resmgr.daemon.endpoint import Endpoint, EndpointTaken, read_endpoint
from nri_resmgr.daemon.health import Heartbeat, sickness, unreadiness
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.log import Logger
from nri_resmgr.log.output import lost_lines
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.version import our_version

log = Logger(__name__)

# Prometheus asks a few times a minute, the kubelet likewise.
LIMITS: Final = ClientLimits(head=8 << 10, body=0, connections=16, seconds=5.0)

_PAUSE: Final = 5.0  # seconds between attempts to listen


async def serve_insight(daemon: Daemon) -> None:
    """Answer at ``--http-endpoint`` until cancelled.

    Where somebody else has it, wait: so it is for a moment while one instance follows
    another.
    """
    endpoint = read_endpoint(daemon.options.http_endpoint)
    insight = Insight(daemon)
    site = Site(insight.routes, LIMITS)
    listener = await _listening(endpoint)
    # Port 0 has become another one.
    found = msgspec.structs.replace(endpoint, port=listener.getsockname()[1])
    log.info("http.listening", endpoint=str(found))
    async with asyncio.TaskGroup() as group:
        group.create_task(insight.heartbeat.beat())
        group.create_task(serve(site, listener))


async def _listening(endpoint: Endpoint) -> socket.socket:
    has_told = False
    while True:
        try:
            return endpoint.listen()
        except EndpointTaken as error:
            if not has_told:
                log.warning("http.not-listening", why=str(error), again_in=_PAUSE)
            has_told = True
        await asyncio.sleep(_PAUSE)


class Insight:
    """What is at each path.

    Attributes:
        heartbeat: Feels whether the loop turns; somebody has to let it beat.
        routes: The handlers.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        if daemon.watch.metrics is None:
            raise TypeError("there are no counters to serve")
        self._counters = daemon.watch.metrics
        self.heartbeat = Heartbeat()
        self.routes: Routes = {
            ("GET", "/metrics"): self._metrics,
            ("GET", "/healthz"): self._healthz,
            ("GET", "/readyz"): self._readyz,
        }

    def series(self) -> Iterator[Series]:
        """Gather everything that `metric_table` has."""
        daemon = self._daemon
        yield from self._counters.series()
        yield from _of_updates(daemon.policy.updates)
        yield from _of_configuration(daemon.configuration)
        if daemon.checkpoint_writer is not None:
            yield from _of_keeper(daemon.checkpoint_writer)
        if daemon.verification is not None:
            from nri_resmgr.app.metrics.of_verification import series_of_verification

            yield from series_of_verification(daemon.verification)
        yield from _of_host(daemon)
        yield from _of_classes(daemon)
        managers = {(one.kind, one.policy): 1 for one in daemon.kubelet}
        yield Series(table.KUBELET, managers)
        names = daemon.options.metrics_per_container
        yield from series_of_state(daemon.policy, daemon.tree, per_container=names)
        yield from series_of_process(our_version(), daemon.stub.runtime)
        yield single(table.STARTED, daemon.watch.started / 1e9)
        yield single(table.LINES_LOST, lost_lines())
        yield single(table.LOOP_LAG, self.heartbeat.lag)
        yield single(table.LOOP_LAG_MAX, self.heartbeat.worst_lag)

    async def _metrics(self, _: HttpRequest) -> HttpReply:
        parts: list[str] = []
        for one in self.series():
            parts.append(render([one]))
            await asyncio.sleep(0)  # requests of the runtime go first
        if self._daemon.policy.config.rdt is not None:
            from nri_resmgr.app.metrics.of_classes import series_of_counters

            host = self._daemon.policy.class_hosts.rdt
            parts.append(render(await asyncio.to_thread(series_of_counters, host)))
        return HttpReply("".join(parts).encode(), CONTENT_TYPE)

    def _healthz(self, _: HttpRequest) -> HttpReply:
        return _verdict(sickness(self.heartbeat, self._counters))

    def _readyz(self, _: HttpRequest) -> HttpReply:
        sessions = self._daemon.watch.sessions
        return _verdict(unreadiness(sessions.state, sessions.lost_why))


def _of_classes(daemon: Daemon) -> Iterator[Series]:
    config = daemon.policy.config
    kinds = (config.rdt, config.blockio, config.memory_qos, config.memory_policy)
    if any(one is not None for one in kinds):
        from nri_resmgr.app.metrics.of_classes import series_of_classes

        yield from series_of_classes(daemon.policy, daemon.policy.class_hosts)


def _verdict(why_not: str) -> HttpReply:
    return text_reply(f"{why_not}\n", 503) if why_not else text_reply("ok\n")


def _of_updates(updates: UpdateSender) -> Iterator[Series]:
    sent, failed = updates.sent, updates.failed
    yield Series(table.UNSOLICITED, {("taken",): sent, ("failed",): failed})
    yield single(table.PENDING_UPDATES, len(updates.pending))
    yield single(table.PENDING_UPDATES_OLDEST, updates.pending.oldest_seconds)


def _of_configuration(configuration: Any) -> Iterator[Series]:
    status = configuration.status
    yield single(table.GENERATION, status.generation)
    yield single(table.CONFIGURED, status.accepted)
    yield single(table.CONFIGURATION_OK, int(status.error is None))
    yield single(table.CONFIGURATIONS_REJECTED, status.rejected)


def _of_host(daemon: Daemon) -> Iterator[Series]:
    from nri_resmgr.app.host_settings.wanted import use_in_force
    from nri_resmgr.app.metrics.of_host import series_of_host

    yield from series_of_host(use_in_force(daemon.policy), daemon.reconcilers.host)


def _of_keeper(checkpoint_writer: Any) -> Iterator[Series]:
    yield single(table.CHECKPOINTS, checkpoint_writer.writes)
    yield single(table.CHECKPOINT_FAILURES, checkpoint_writer.failures)
    yield single(table.CHECKPOINT_BYTES, checkpoint_writer.last_size)
    yield single(table.CHECKPOINT_SECONDS, checkpoint_writer.last_seconds)
