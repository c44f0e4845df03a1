"""Metrics of the real daemon, as a collector of OpenTelemetry receives them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.values import QosClass
from tests.daemon.daemon_process import daemon
from tests.daemon.test_observability import (
    MACHINE,
    document,
    free_port,
    reloaded,
    status_of,
)
from tests.daemon.test_tracing import Collector, collecting, collector, texts
from tests.waiting import until

pytestmark = pytest.mark.process

__all__ = ["collector"]

_LINE: Final = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
# What changes between the scrape and the export, and what no export has.
_MOVES: Final = re.compile(r"process_|nri_resmgr_(loop|event_loop|log)_")


def sent(metrics: dict[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield name, labels and value of each number as Prometheus writes them."""
    for name, metric in metrics.items():
        data = getattr(metric, metric.WhichOneof("data"))
        for point in data.data_points:
            labels = ",".join(f'{key}="{text}"' for key, text in texts(point).items())
            if metric.WhichOneof("data") == "histogram":
                yield f"{name}_count", labels, point.count
                yield f"{name}_sum", labels, point.sum
                bounds = [*map(repr, point.explicit_bounds), "+Inf"]
                total = 0
                for bound, count in zip(bounds, point.bucket_counts, strict=True):
                    total += count
                    yield f"{name}_bucket", f'{labels},le="{bound}"', total
            else:
                whole = point.WhichOneof("value") == "as_int"
                yield name, labels, point.as_int if whole else point.as_double


def scraped(text: str) -> Iterator[tuple[str, str, float]]:
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            yield match["name"], match["labels"] or "", float(match["value"])


async def test_a_collector_gets_what_prometheus_scrapes(
    tmp_path: Path, collector: Collector
) -> None:
    port = free_port()
    use = {"metricsExporter": "otlp-http", "reportPeriod": "24h"}
    path = document(tmp_path / "my.yaml")
    flags = ("--config-file", str(path), "--http-endpoint", f"127.0.0.1:{port}")
    given = {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{collector.url}/v1/metrics"}
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        document(path, instrumentation=use)
        await reloaded(running, 0)
        await until(lambda: bool(collector.metrics()), 30)
        _, text = await status_of(port, "/metrics")
    (metrics,) = collector.metrics()

    found, expected = (
        {row for row in rows if not _MOVES.match(row[0])}
        for rows in (sent(metrics), scraped(text))
    )
    assert len(expected) > 100
    assert found == expected
    requests = metrics["nri_resmgr_requests_total"]
    assert (requests.sum.is_monotonic, requests.sum.aggregation_temporality) == (
        True,
        2,  # since the start
    )
    assert requests.sum.data_points[0].start_time_unix_nano > 0


async def test_metrics_are_sent_in_each_period_as_chosen(
    tmp_path: Path, collector: Collector
) -> None:
    use = {"metricsExporter": "otlp-http", "reportPeriod": "500ms"}
    chosen = {"enabled": ["nri_resmgr_requests_total"]}
    path = document(tmp_path / "my.yaml", instrumentation={**use, "metrics": chosen})
    flags = ("--config-file", str(path))
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_TRACES_SAMPLER": "always_off",
    }
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))

        def created() -> float:
            rows = [row for one in collector.metrics() for row in sent(one)]
            return max(
                (v for _, text, v in rows if "CreateContainer" in text), default=0
            )

        await until(lambda: created() == 1, 30)
        document(path)
        await reloaded(running, 0)
        number = len(collector.metrics())
        await running.place(Workload("other", QosClass.GUARANTEED, 1000))

    assert {name for one in collector.metrics() for name in one} == {
        "nri_resmgr_requests_total"
    }
    # One export may have been on its way.
    assert len(collector.metrics()) <= number + 1


async def test_a_collector_that_is_away_is_reported_once(tmp_path: Path) -> None:
    port = free_port()
    use = {"metricsExporter": "otlp-http", "reportPeriod": "100ms"}
    path = document(tmp_path / "my.yaml", instrumentation=use)
    given = {
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{port}/v1/metrics",
        # Enough for one more try, before which the reason is known.
        "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "2",
    }
    flags = ("--config-file", str(path))
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        line = await running.line("metrics.not-sent")
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        with collecting(port) as collector:
            await running.line("metrics.sent-again")
            await until(lambda: len(collector.metrics()) > 1, 30)
        events = [one["event"] for one in running.lines()]

    assert "refused" in line["why"]
    again = events.index("metrics.sent-again")
    assert events[:again].count("metrics.not-sent") == 1
