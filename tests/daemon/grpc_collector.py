"""A collector of OpenTelemetry over gRPC, by grpcio's own server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final

import pytest

from tests.daemon.test_tracing import Received

# By the paths that HTTP has for them.
_SERVICES: Final = {
    "/v1/logs": "opentelemetry.proto.collector.logs.v1.LogsService",
    "/v1/metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
    "/v1/traces": "opentelemetry.proto.collector.trace.v1.TraceService",
}


class GrpcCollector(Received):
    """Keeps what it is sent over gRPC."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def take(self, path: str, message: bytes, _: object) -> bytes:
        """Take one request, and answer that nothing of it was refused."""
        self.taken.append((path, message))
        return b""


@contextmanager
def collecting_by_grpc(port: int = 0) -> Iterator[GrpcCollector]:
    """Serve a collector; by default on any port."""
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.grpc",
        reason="the extra otel-grpc is not installed",
    )
    import grpc

    collector = GrpcCollector(port)
    server = grpc.server(ThreadPoolExecutor(max_workers=3))
    for path, service in _SERVICES.items():
        take = grpc.unary_unary_rpc_method_handler(partial(collector.take, path))
        handler = grpc.method_handlers_generic_handler(service, {"Export": take})
        server.add_generic_rpc_handlers((handler,))
    collector.port = server.add_insecure_port(collector.address)
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()
