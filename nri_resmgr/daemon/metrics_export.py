"""Export of metrics by OpenTelemetry, an optional dependency; imported for that only.

What is sent are the metrics of ``/metrics``, with their names and labels: a collector
receives what a Prometheus would scrape.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as Buckets
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.metrics.text import BOUNDS, Histogram, Kind, Series
from nri_resmgr.daemon.insight import Insight
from nri_resmgr.daemon.observability import ExportUse
from nri_resmgr.daemon.otel import facts, new_exporter, reasons_of
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.log import Logger
from nri_resmgr.values.printable import printable
from nri_resmgr.version import our_version

log = Logger(__name__)

# A document may ask for none at all.
_LEAST_PERIOD: Final = 0.1  # seconds

_SINCE_START: Final = AggregationTemporality.CUMULATIVE


async def send_metrics(daemon: Daemon, use: ExportUse) -> None:
    """Send metrics at once and in each period, until cancelled.

    Args:
        daemon: Has the metrics.
        use: The period, and how to send them.
    """
    insight = Insight(daemon, serves_metrics=False)
    exporter = await new_exporter("metrics", by_grpc=use.by_grpc)
    export = MetricsExport(daemon.observers.started, exporter)
    log.info("metrics.sent", period=use.period)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(insight.probes.heartbeat.beat())
            while True:
                found = [
                    export.metric(one) async for one in insight.chosen() if one.values
                ]
                await in_thread(partial(export.send, found))
                await asyncio.sleep(max(use.period, _LEAST_PERIOD))
    finally:
        export.close()


class MetricsExport:
    """The way to the collector that OpenTelemetry's variables name.

    Args:
        began: When the daemon started to count, in UNIX nanoseconds.
        exporter: Sends there.
    """

    def __init__(self, began: int, exporter: MetricExporter) -> None:
        self._began = began
        self._resource = Resource.create(facts())
        self._exporter = exporter
        self._is_failing = False

    def metric(self, series: Series) -> Metric:
        """Convert a series with its present values."""
        metric, now = series.metric, time.time_ns()
        points = list[NumberDataPoint]()
        buckets = list[HistogramDataPoint]()
        for texts, value in series.values.items():
            labels = dict(zip(metric.labels, map(_printable, texts), strict=True))
            if isinstance(value, Histogram):
                buckets.append(self._buckets(labels, value, now))
            else:
                points.append(NumberDataPoint(labels, self._began, now, value))
        data: Buckets | Gauge | Sum = Gauge(points)
        if metric.kind is Kind.HISTOGRAM:
            data = Buckets(buckets, _SINCE_START)
        elif metric.kind is Kind.COUNTER:
            data = Sum(points, _SINCE_START, is_monotonic=True)
        return Metric(metric.name, metric.help, "", data)

    def send(self, metrics: Sequence[Metric]) -> None:
        """Send metrics; in a thread, for as long as OpenTelemetry's variables allow.

        That it fails is logged once, and that it works again.
        """
        scope = InstrumentationScope("nri_resmgr", our_version())
        of_scope = ScopeMetrics(scope, metrics, "")
        data = MetricsData([ResourceMetrics(self._resource, [of_scope], "")])
        with reasons_of(self._exporter) as reasons:
            has_failed = self._exporter.export(data) is not MetricExportResult.SUCCESS
        if has_failed and not self._is_failing:
            log.warning("metrics.not-sent", why=next(iter(reasons), ""))
        elif self._is_failing and not has_failed:
            log.info("metrics.sent-again")
        self._is_failing = has_failed

    def close(self) -> None:
        """End; a call in progress does not try again."""
        self._exporter.shutdown()

    def _buckets(
        self, labels: Mapping[str, str], value: Histogram, now: int
    ) -> HistogramDataPoint:
        counts = value.counts
        unknown: Any = None  # optional in OTLP, though not by this type
        return HistogramDataPoint(
            *(labels, self._began, now, sum(counts), value.total),
            *(counts, BOUNDS, unknown, unknown),
        )


def _printable(label: str) -> str:
    # Also because a lone surrogate could not be sent.
    return printable(label, "\n")
