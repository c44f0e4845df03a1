"""Metrics and health of the agent, and of the webhook, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from nri_resmgr.app.background.supervisor import Supervisor
from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.of_parts import series_of_parts
from nri_resmgr.app.metrics.text import CONTENT_TYPE, Series, render, single
from nri_resmgr.control.http import ClientLimits, HttpReply, HttpRequest, Routes, Site
from nri_resmgr.log import Logger, lost_lines
from nri_resmgr.process.endpoint import listen_when_free, read_endpoint
from nri_resmgr.process.health import (
    Probes,
    process_problem,
    serve_probes,
    serve_with_health,
)
from nri_resmgr.process.own_metrics import series_of_process

log = Logger(__name__)

# Prometheus sends a few requests per minute; the text has some kilobytes.
LIMITS: Final = ClientLimits(head=8 << 10, body=0, connections=32, seconds=5.0)


class ProcessInsight:
    """Serves metrics, and liveness and readiness.

    The process is alive while its event loop runs and no essential part is lost:
    another one would find the same API server, the same files and the same rights.

    Args:
        supervisor: Of the parts of the process.
        series: Returns the series of what the process does.
        why_not_ready: Returns why the process is not ready; empty if it is.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        series: Callable[[], Iterable[Series]],
        why_not_ready: Callable[[], str],
    ) -> None:
        self._supervisor = supervisor
        self._series = series
        self._why_not_ready = why_not_ready
        self._started = time.time()

    async def serve_metrics(self, endpoint: str) -> None:
        """Serve ``--http-endpoint`` until cancelled."""
        probes = self._probes()
        routes: Routes = {**probes.routes, ("GET", "/metrics"): self._metrics(probes)}
        address = read_endpoint("--http-endpoint", endpoint)
        listener, where = await listen_when_free(address)
        log.info("http.listening", endpoint=where)
        await serve_with_health(Site(routes, LIMITS), listener, probes)

    async def serve_health(self, endpoint: str) -> None:
        """Serve ``--health-endpoint`` until cancelled."""
        await serve_probes(self._probes(), endpoint)

    def _probes(self) -> Probes:
        return Probes(
            lambda heartbeat: process_problem(heartbeat, self._supervisor),
            self._why_not_ready,
        )

    def _metrics(self, probes: Probes) -> Callable[[HttpRequest], HttpReply]:
        def answer(_: HttpRequest) -> HttpReply:
            return HttpReply(render(self._all(probes)).encode(), CONTENT_TYPE)

        return answer

    def _all(self, probes: Probes) -> Iterator[Series]:
        yield from self._series()
        yield from series_of_parts(self._supervisor.parts)
        yield from series_of_process()
        yield single(table.STARTED, self._started)
        yield single(table.LINES_LOST, lost_lines.total)
        yield single(table.LOOP_LAG, probes.heartbeat.lag)
        yield single(table.LOOP_LAG_MAX, probes.heartbeat.worst_lag)
