"""Export of traces by OpenTelemetry, an optional dependency; imported with traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace import sampling as samplers
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from nri_resmgr.app.observing.tracing import Span, Tracing
from nri_resmgr.daemon.observability import TraceUse
from nri_resmgr.daemon.otel import facts, flush, new_exporter
from nri_resmgr.log import Logger
from nri_resmgr.version import our_version

log = Logger(__name__)


async def send_traces(tracing: Tracing, use: TraceUse) -> None:
    """Send spans until cancelled, then remaining ones for up to a second.

    Args:
        tracing: Makes the spans.
        use: The collector.
    """
    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = [_LogHandler()], False
    exporter = await new_exporter("traces", by_grpc=use.by_grpc, **_collector(use))
    provider = new_provider(exporter, use.sampling)
    tracing.send_to(sender(provider))
    log.info("tracing.started", endpoint=use.endpoint or "as OTEL_ variables say")
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        tracing.send_to(lambda _: None)
        await flush(provider.shutdown)


def new_provider(exporter: SpanExporter, sampling: str) -> TracerProvider:
    """Set up the libraries."""
    sampler = None
    if sampling:
        sampler = samplers.ParentBased(samplers.TraceIdRatioBased(float(sampling)))
    resource = Resource.create(facts())
    provider = TracerProvider(sampler, resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def sender(provider: TracerProvider) -> Callable[[Span], None]:
    """Make a function that converts spans to OpenTelemetry's and sends them."""
    tracer = provider.get_tracer("nri_resmgr", our_version())
    propagator = TraceContextTextMapPropagator()

    def send(span: Span) -> None:
        made = tracer.start_span(
            span.name,
            context=propagator.extract(span.carrier),
            kind=SpanKind.SERVER,
            attributes=span.attributes,
            start_time=span.began,
        )
        if span.error:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(span.ended)

    return send


class _LogHandler(logging.Handler):
    """Passes the libraries' log records to this log; they drop repetitions."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record as a warning."""
        log.warning("tracing.failed", why=record.getMessage())


def _collector(use: TraceUse) -> dict[str, Any]:
    """Return arguments of the exporter."""
    if not use.endpoint:
        return {}
    if use.by_grpc:
        return {"endpoint": use.endpoint, "insecure": True}
    scheme, _, rest = use.endpoint.partition("://")
    host, _, path = rest.partition("/")
    return {"endpoint": f"{scheme}://{host}/{path or 'v1/traces'}"}
