"""Traces of the real daemon, as a collector receives them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import daemon

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("1s2n2c1t")


class Received:
    """What a collector was sent: by requests, the path of HTTP and the message."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, bytes]] = []

    def metrics(self) -> list[dict[str, Any]]:
        """Read metrics by name, as OpenTelemetry's own messages, of each request."""
        service = pytest.importorskip(
            "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2"
        )
        messages = [
            service.ExportMetricsServiceRequest.FromString(body)
            for path, body in self.taken
            if path == "/v1/metrics"
        ]
        return [
            {one.name: one for one in scope.metrics}
            for message in messages
            for resource in message.resource_metrics
            for scope in resource.scope_metrics
        ]

    def logs(self) -> list[list[tuple[str, Any]]]:
        """Read component and record of each line, of each request."""
        service = pytest.importorskip(
            "opentelemetry.proto.collector.logs.v1.logs_service_pb2"
        )
        messages = [
            service.ExportLogsServiceRequest.FromString(body)
            for path, body in self.taken
            if path == "/v1/logs"
        ]
        return [
            [
                (scope.scope.name, record)
                for resource in message.resource_logs
                for scope in resource.scope_logs
                for record in scope.log_records
            ]
            for message in messages
        ]

    def spans(self) -> list[Any]:
        """Read all spans as OpenTelemetry's own messages."""
        service = pytest.importorskip(
            "opentelemetry.proto.collector.trace.v1.trace_service_pb2"
        )
        messages = [
            service.ExportTraceServiceRequest.FromString(body)
            for path, body in self.taken
            if path == "/v1/traces"
        ]
        return [
            span
            for message in messages
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class Collector(HTTPServer, Received):
    """Keeps what it is sent over HTTP."""

    def __init__(self, port: int = 0) -> None:
        HTTPServer.__init__(self, ("127.0.0.1", port), Taker)
        Received.__init__(self)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class Taker(BaseHTTPRequestHandler):
    """Takes one request for its collector."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Collector)
        self.server.taken.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    """Serve a collector; by default on any port."""
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    with Collector(port) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


def texts(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


async def test_requests_are_reported_to_the_collector(
    tmp_path: Path, collector: Collector
) -> None:
    flags = ("--otel-endpoint", collector.url)
    async with daemon(tmp_path, MACHINE, *flags) as running:
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        with pytest.raises(PluginRefused):
            await running.place(Workload("huge", QosClass.GUARANTEED, 64000))
        await running.line("tracing.started")
    spans = [span for span in collector.spans() if span.name == "CreateContainer"]
    placed, refused = spans

    assert {path for path, _ in collector.taken} == {"/v1/traces"}
    assert texts(placed)["nri.rule"] == "whole-cpus"
    assert texts(placed)["k8s.pod.name"] == "own"
    assert texts(refused)["nri.result"] == "refused"
    assert (placed.status.code, refused.status.code) == (0, 2)
    assert "64" in refused.status.message
    assert placed.start_time_unix_nano < placed.end_time_unix_nano


async def test_only_the_configured_share_of_requests_is_reported(
    tmp_path: Path, collector: Collector
) -> None:
    flags = ("--otel-endpoint", collector.url, "--otel-sampling", "0")
    async with daemon(tmp_path, MACHINE, *flags) as running:
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        await running.line("tracing.started")

    assert collector.spans() == []


async def test_a_variable_of_opentelemetry_is_enough(
    tmp_path: Path, collector: Collector
) -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    async with daemon(tmp_path, MACHINE, environment=given) as running:
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        await running.line("tracing.started")

    assert "CreateContainer" in {span.name for span in collector.spans()}


async def test_an_unreachable_collector_delays_nothing(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    flags = ("--otel-endpoint", "http://127.0.0.1:9")
    async with daemon(tmp_path, MACHINE, *flags) as running:
        await running.line("tracing.started")
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        began = time.monotonic()
        running.process.terminate()
        await running.process.wait()
        took = time.monotonic() - began

    assert took < 4
    assert running.process.returncode == 0
    assert {"tracing.failed"} <= {line["event"] for line in running.lines()}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ("--otel-endpoint", "collector:4318"),
            "--otel-endpoint: 'collector:4318': expected http://HOST:PORT or https://",
        ),
        (
            ("--otel-sampling", "10%"),
            "--otel-sampling: '10%': expected a number from 0 to 1",
        ),
    ],
)
def test_bad_flags_are_refused_before_the_start(
    flags: tuple[str, ...], sentence: str
) -> None:
    done = nri_resmgr("run", *flags)

    assert (done.returncode, done.stderr) == (2, f"nri-resmgr: {sentence}\n")
