"""Metrics over HTTP, with health and the page of the node beside them; read-only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Final

from msgspec.structs import replace

from nri_resmgr.app.background.threads import OneCall, imported
from nri_resmgr.app.host_settings.wanted import use_in_force
from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.busy_pools import BusyPools
from nri_resmgr.app.metrics.groups import is_chosen
from nri_resmgr.app.metrics.of_host import (
    RDT_COUNTERS,
    series_of_classes,
    series_of_host,
    series_of_rdt_counters,
    series_of_verification,
)
from nri_resmgr.app.metrics.of_partitions import series_of_partitions
from nri_resmgr.app.metrics.of_parts import series_of_parts
from nri_resmgr.app.metrics.of_state import series_of_state
from nri_resmgr.app.metrics.of_versions import series_of_versions
from nri_resmgr.app.metrics.served import ServedMetrics
from nri_resmgr.app.metrics.text import CONTENT_TYPE, Series, single
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.app.running.delivery import pending_pins
from nri_resmgr.checkpoint.writer import CheckpointWriter
from nri_resmgr.control.http import (
    ClientLimits,
    Handler,
    HttpReply,
    HttpRequest,
    Site,
)
from nri_resmgr.daemon.log_setup import waiting_lines
from nri_resmgr.daemon.observability import HttpUse
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.daemon.probes import probes_of
from nri_resmgr.daemon.rendering import Rendering
from nri_resmgr.daemon.view import daemon_view_of
from nri_resmgr.host.cpu_time import Ticks, read_ticks
from nri_resmgr.host.tree import HostFileError
from nri_resmgr.log import Logger, lost_lines
from nri_resmgr.log.copies import line_copies
from nri_resmgr.policy.claims import cpus_of
from nri_resmgr.process.endpoint import listen_when_free, read_endpoint
from nri_resmgr.process.health import serve_with_health
from nri_resmgr.process.own_metrics import series_of_process
from nri_resmgr.version import our_version

log = Logger(__name__)

# Prometheus sends a few requests per minute. A client that does not read its answer
# holds up to a megabyte.
LIMITS: Final = ClientLimits(head=8 << 10, body=0, connections=32, seconds=5.0)

# Below the five seconds of a client; each read takes milliseconds.
_PATIENCE: Final = 2.0  # seconds


async def serve_insight(daemon: Daemon, use: HttpUse) -> None:
    """Serve ``--http-endpoint``, or that of the document, until cancelled."""
    endpoint = read_endpoint(use.source, use.endpoint)
    insight = Insight(daemon, serves_metrics=use.serves_metrics)
    site = Site(insight.routes, LIMITS)
    if use.serves_page:
        # Late: few nodes have a page.
        page = await imported("nri_resmgr.control.page.routes")
        insight.routes.update(page.page_routes(daemon_view_of(daemon)))
        site = replace(site, permit=page.permit_page)
    listener, where = await listen_when_free(endpoint)
    log.info("http.listening", endpoint=where)
    await serve_with_health(site, listener, insight.probes)


class Insight:
    """The handlers of all paths.

    Attributes:
        probes: Liveness and readiness; its heartbeat has to beat.
        routes: The handlers.
    """

    def __init__(self, daemon: Daemon, *, serves_metrics: bool = True) -> None:
        self._daemon = daemon
        self._served = ServedMetrics()
        self._rdt_counters = OneCall[tuple[Series, ...]](_PATIENCE)
        self._ticks, self._busy_pools = OneCall[Ticks](_PATIENCE), BusyPools()
        self._rendering = Rendering(self._render)
        self.probes = probes_of(daemon)
        self.routes: dict[tuple[str, str], Handler] = dict(self.probes.routes)
        if serves_metrics:
            self.routes["GET", "/metrics"] = self._metrics

    def series(self) -> Iterator[Series]:
        """Yield all series of `nri_resmgr.app.metrics.table`."""
        daemon = self._daemon
        yield from daemon.observers.metrics.series()
        yield from _of_updates(daemon.policy)
        yield from _of_configuration(daemon)
        missing = sum(not one.is_expected for one in daemon.policy.left_out)
        yield single(table.CONFIGURATION_LEFT_OUT, missing)
        if daemon.checkpoint_writer is not None:
            yield from _of_checkpoints(daemon.checkpoint_writer)
        if daemon.verification is not None:
            yield from series_of_verification(daemon.verification)
        yield from _of_host(daemon)
        yield from _of_classes(daemon)
        managers = {(one.kind, one.policy or "unknown"): 1 for one in daemon.kubelet}
        yield Series(table.KUBELET, managers)
        services = daemon.kubelet_services.uses
        answering = {(one.service.name,): int(not one.problem) for one in services}
        yield Series(table.KUBELET_SERVICE, answering)
        claims = daemon.policy.claims
        yield single(table.CLAIMED_CPUS, len(claims.taken))
        yield single(table.CLAIM_CONFLICT, int(bool(claims.conflict)))
        prepared = daemon.policy.policy.claims(daemon.policy.state).values()
        yield single(table.PREPARED_CLAIMS, len(prepared))
        yield single(table.PREPARED_CPUS, len(cpus_of(prepared)))
        yield from series_of_parts(daemon.supervisor.parts)
        yield from series_of_partitions(daemon.policy.delivery)
        names = daemon.options.metrics_per_container
        yield from series_of_state(daemon.policy, daemon.tree, per_container=names)
        yield from series_of_versions(our_version(), daemon.stub.runtime)
        yield from series_of_process()
        yield single(table.STARTED, daemon.observers.started / 1e9)
        yield single(table.LINES_LOST, lost_lines.total)
        yield single(table.LINES_NOT_SENT, line_copies.lost)
        yield single(table.LINES_WAITING, waiting_lines())
        yield single(table.LOOP_LAG, self.probes.heartbeat.lag)
        yield single(table.LOOP_LAG_MAX, self.probes.heartbeat.worst_lag)

    async def chosen(self) -> AsyncIterator[Series]:
        """Yield the series that are served, each with its present values.

        They change with the next request, and requests go between two of them.
        """
        enabled = self._daemon.observability.present.enabled
        for one in self.series():
            if enabled is None or is_chosen(one.metric.name, enabled):
                yield one
            await asyncio.sleep(0)
        read = [*await self._busy_series()]
        if self._daemon.policy.config.rdt is not None:
            read += await self._rdt_series()
        for one in read:
            if enabled is None or is_chosen(one.metric.name, enabled):
                yield one

    async def _metrics(self, _: HttpRequest) -> HttpReply:
        return HttpReply(await self._rendering.text(), CONTENT_TYPE)

    async def _render(self) -> bytes:
        now, served = self._daemon.observability.present, self._served
        served.begin(now.enabled, now.polled, now.period, monotonic())
        parts: list[str] = []
        for one in self.series():
            parts.append(served.text(one))
            await asyncio.sleep(0)  # requests of the runtime go first
        parts.append(await self._of_busy_pools())
        if self._daemon.policy.config.rdt is not None:
            parts.append(await self._of_rdt())
        return "".join(parts).encode()

    async def _of_busy_pools(self) -> str:
        if (known := self._served.without_reading((table.POOL_BUSY,))) is not None:
            return known
        return "".join(map(self._served.text, await self._busy_series()))

    async def _busy_series(self) -> tuple[Series, ...]:
        policy, tree = self._daemon.policy, self._daemon.tree
        # A machine from a file has no times; the others are served.
        with suppress(TimeoutError, HostFileError):
            # The kernel adds up all interrupts for it: milliseconds with many CPUs.
            ticks = await self._ticks.result(partial(read_ticks, tree))
            pools = policy.policy.pools(policy.state)
            return (self._busy_pools.series(ticks, pools),)
        return ()

    async def _of_rdt(self) -> str:
        if (known := self._served.without_reading(RDT_COUNTERS)) is not None:
            return known
        return "".join(map(self._served.text, await self._rdt_series()))

    async def _rdt_series(self) -> tuple[Series, ...]:
        read = partial(series_of_rdt_counters, self._daemon.policy.class_hosts.rdt)
        with suppress(TimeoutError):  # the others are served
            return await self._rdt_counters.result(read)
        return ()


def _of_classes(daemon: Daemon) -> Iterator[Series]:
    config = daemon.policy.config
    kinds = (config.rdt, config.blockio, config.memory_qos, config.memory_policy)
    if any(one is not None for one in kinds):
        yield from series_of_classes(daemon.policy, daemon.policy.class_hosts)


def _of_updates(policy: NodePolicy) -> Iterator[Series]:
    updates, delivery = policy.updates, policy.delivery
    sent, failed = updates.sent, updates.failed
    yield Series(table.UNSOLICITED, {("taken",): sent, ("failed",): failed})
    waiting = pending_pins(delivery, updates)
    yield single(table.PENDING_UPDATES, waiting.count)
    yield single(table.PENDING_UPDATES_OLDEST, waiting.oldest_seconds)
    yield single(table.RECORD_UPDATES, updates.pending.records)
    yield single(table.RECORD_UPDATES_OLDEST, updates.pending.oldest_record_seconds)
    if (counts := delivery.counts) is not None:
        yield Series(
            table.CGROUP_WRITES,
            {
                ("written",): counts.written - counts.rewritten,
                ("rewritten",): counts.rewritten,
                ("failed",): counts.failed,
            },
        )
        yield single(table.LATE_STARTS, counts.late_starts)
    is_off = counts is None or bool(delivery.problem)
    containers = policy.state.ledger.entries if is_off else delivery.by_runtime()
    yield single(table.BY_RUNTIME, len(containers))


def _of_configuration(daemon: Daemon) -> Iterator[Series]:
    status = daemon.policy.configuration.status
    yield single(table.GENERATION, status.generation)
    yield single(table.CONFIGURED, status.accepted)
    yield single(table.CONFIGURATION_OK, int(status.error is None))
    yield single(table.CONFIGURATIONS_REJECTED, status.rejected)
    cluster = daemon.configuration.cluster
    judged = cluster.status.configuration if cluster else None
    if judged is not None and judged.would_change is not None:
        yield single(table.WOULD_CHANGE, len(judged.would_change))


def _of_host(daemon: Daemon) -> Iterator[Series]:
    yield from series_of_host(use_in_force(daemon.policy), daemon.reconcilers.host)


def _of_checkpoints(writer: CheckpointWriter) -> Iterator[Series]:
    yield single(table.CHECKPOINTS, writer.writes)
    yield single(table.CHECKPOINT_FAILURES, writer.failures)
    yield single(table.CHECKPOINT_BYTES, writer.last_size)
    yield single(table.CHECKPOINT_SECONDS, writer.last_seconds)
