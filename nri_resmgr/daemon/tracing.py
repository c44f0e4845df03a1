"""Export of traces by OpenTelemetry, an optional dependency; imported with traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace import sampling as samplers
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from nri_resmgr.app.background.threads import start_last_thread
from nri_resmgr.app.observing.tracing import Span, Tracing
from nri_resmgr.daemon.otel import facts
from nri_resmgr.log import Logger
from nri_resmgr.version import our_version

log = Logger(__name__)

# An unreachable collector must not delay the end of the process.
_FLUSH_TIMEOUT: Final = 1.0  # seconds


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
        await _end(provider)


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


async def _end(provider: TracerProvider) -> None:
    """Send remaining spans; the libraries would retry for half a minute."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(ended.set)

    start_last_thread(end)
    deadline = loop.time() + _FLUSH_TIMEOUT
    # At the end of the process each task around this one cancels it again.
    while not ended.is_set() and (left := deadline - loop.time()) > 0:
        with suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(ended.wait(), left)


def _traces_url(endpoint: str) -> str:
    scheme, _, rest = endpoint.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}/{path or 'v1/traces'}"
