"""Metrics, traces and the log of the real daemon, as a collector gets them by gRPC."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.values import QosClass
from tests.cli.command import ROOT
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.grpc_collector import collecting_by_grpc
from tests.daemon.test_log_export import events, records
from tests.daemon.test_observability import MACHINE, document, free_port
from tests.daemon.test_tracing import Collector, collector, texts
from tests.waiting import until

pytestmark = pytest.mark.process

__all__ = ["collector"]

METRICS: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
LOGS: Final = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"

USE: Final = {
    "metricsExporter": "otlp-grpc",
    "reportPeriod": "200ms",
    "logExporter": "otlp-grpc",
    "logExportPeriod": "100ms",
}


def has_grpc(running: RunningDaemon) -> bool:
    """Return whether grpcio's library is in the memory of the daemon."""
    return "cygrpc" in Path(f"/proc/{running.process.pid}/maps").read_text()


@pytest.mark.parametrize(
    ("traces", "variables"),
    [
        pytest.param(
            {"tracingCollector": "otlp-grpc://{}", "samplingRatePerMillion": 1_000_000},
            (METRICS, LOGS),
            id="a document with the address, and a variable for each signal",
        ),
        pytest.param(
            {"tracingCollector": "otlp-grpc"},
            ("OTEL_EXPORTER_OTLP_ENDPOINT",),
            id="one variable, by which requests are traced",
        ),
    ],
)
async def test_a_collector_gets_all_signals(
    traces: dict[str, Any], variables: tuple[str, ...], tmp_path: Path
) -> None:
    control = tmp_path / "control.sock"
    with collecting_by_grpc() as collector:
        where = traces["tracingCollector"].format(collector.address)
        use = {**USE, **traces, "tracingCollector": where}
        path = document(tmp_path / "my.yaml", instrumentation=use)
        flags = ("--config-file", str(path), "--control-socket", str(control))
        given = dict.fromkeys(variables, f"http://{collector.address}")
        async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
            for event in ("tracing.started", "metrics.sent", "log.sent"):
                await running.line(event)
            await running.place(Workload("own", QosClass.GUARANTEED, 1000))
            await until(lambda: "container.placed" in events(collector), 30)
            number = len(collector.metrics())
            await until(lambda: len(collector.metrics()) > number, 30)
            shown = await asyncio.to_thread(Client(str(control)).get, "/v1/state")
            loaded = has_grpc(running)

    assert {path for path, _ in collector.taken} == {
        "/v1/logs",
        "/v1/metrics",
        "/v1/traces",
    }
    (span,) = (one for one in collector.spans() if one.name == "CreateContainer")
    assert texts(span)["k8s.pod.name"] == "own"
    (record,) = (
        one for one in records(collector) if one.event_name == "container.placed"
    )
    assert texts(record)["title"] == "default/own/own"
    requests = collector.metrics()[-1]["nri_resmgr_requests_total"]
    assert "CreateContainer" in {
        text for one in requests.sum.data_points for text in texts(one).values()
    }
    found = {one["name"]: one["value"] for one in shown["observability"]}
    assert found["metrics sent"] == "by OTLP over gRPC every 0.2 s"
    assert found["log sent"] == "by OTLP over gRPC every 0.1 s"
    assert found["traces"].endswith(", by OTLP over gRPC")
    assert loaded


async def test_a_collector_that_is_away_is_reported_by_each_signal(
    tmp_path: Path,
) -> None:
    """All exporters over gRPC have one logger: each reports its own failures."""
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.grpc",
        reason="the extra otel-grpc is not installed",
    )
    port = free_port()
    traces = {
        "tracingCollector": f"otlp-grpc://127.0.0.1:{port}",
        "samplingRatePerMillion": 1_000_000,
    }
    path = document(tmp_path / "my.yaml", instrumentation={**USE, **traces})
    given = {
        **dict.fromkeys((METRICS, LOGS), f"http://127.0.0.1:{port}"),
        # Enough for one more try, before which the reason is known.
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2",
        "OTEL_BSP_SCHEDULE_DELAY": "100",  # milliseconds
    }
    flags = ("--config-file", str(path))
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        why = {
            event: (await running.line(event))["why"]
            for event in ("metrics.not-sent", "log.not-sent", "tracing.failed")
        }
        with collecting_by_grpc(port) as collector:
            await running.line("metrics.sent-again")
            await running.place(Workload("other", QosClass.GUARANTEED, 1000))
            await running.line("log.sent-again")
            await until(lambda: bool(collector.spans()), 30)
        lines = running.lines()

    assert "UNAVAILABLE" in why["metrics.not-sent"]
    assert "exporting metrics to" in why["metrics.not-sent"]
    assert "exporting logs to" in why["log.not-sent"]
    assert all(
        " traces to" in one["why"] for one in lines if one["event"] == "tracing.failed"
    )
    again = [one["event"] for one in lines].index("metrics.sent-again")
    before = [one["event"] for one in lines[:again]]
    assert before.count("metrics.not-sent") == before.count("log.not-sent") == 1


async def test_exports_over_http_load_no_grpc(
    tmp_path: Path, collector: Collector
) -> None:
    use = {"metricsExporter": "otlp-http", "logExporter": "otlp-http"}
    path = document(tmp_path / "my.yaml", instrumentation=use)
    flags = ("--config-file", str(path))
    # With this one requests are traced, too.
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        await running.line("tracing.started")
        await until(lambda: bool(collector.metrics() and collector.logs()), 30)
        loaded = has_grpc(running)

    assert not loaded


async def test_without_the_extra_each_signal_is_reported(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys; sys.modules['opentelemetry.exporter.otlp.proto.grpc'] = None\n"
    )
    traces = {"tracingCollector": "otlp-grpc", "samplingRatePerMillion": 1}
    path = document(tmp_path / "my.yaml", instrumentation={**USE, **traces})
    given = {"PYTHONPATH": os.pathsep.join((str(hidden), str(ROOT)))}
    flags = ("--config-file", str(path))
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        lines = [
            await running.line(event)
            for event in (
                "metrics.not-installed",
                "log.not-installed",
                "tracing.not-installed",
            )
        ]
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))

    assert {(one["level"], one["extra"]) for one in lines} == {("warning", "otel-grpc")}
