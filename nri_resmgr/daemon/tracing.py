"""Export of traces by OpenTelemetry, an optional dependency; imported with traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace import sampling as samplers
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from nri_resmgr.app.observing.tracing import Span, Tracing
from nri_resmgr.daemon.otel import facts, flush
from nri_resmgr.log import Logger
from nri_resmgr.version import our_version

log = Logger(__name__)


async def send_traces(tracing: Tracing, endpoint: str, sampling: str) -> None:
    """Send spans until cancelled, then remaining ones for up to a second.

    Args:
        tracing: Makes the spans.
        endpoint: The collector's URL; empty for the ``OTEL_`` variables'.
        sampling: The fraction of requests to trace; empty likewise.
    """
    provider = new_provider(endpoint, sampling)
    tracing.send_to(sender(provider))
    log.info("tracing.started", endpoint=endpoint or "as OTEL_ variables say")
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        tracing.send_to(lambda _: None)
        await flush(provider.shutdown)


def new_provider(endpoint: str, sampling: str) -> TracerProvider:
    """Set up the libraries."""
    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = [_LogHandler()], False
    sampler = None
    if sampling:
        sampler = samplers.ParentBased(samplers.TraceIdRatioBased(float(sampling)))
    resource = Resource.create(facts())
    provider = TracerProvider(sampler, resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=_traces_url(endpoint) if endpoint else None)
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


def _traces_url(endpoint: str) -> str:
    scheme, _, rest = endpoint.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}/{path or 'v1/traces'}"
