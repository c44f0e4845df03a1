"""Export of traces to an OpenTelemetry collector; needs ``nri-resmgr[otel]``."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from nri_resmgr.app.observing.tracing import Span, Tracing
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError
from nri_resmgr.version import our_version

log = Logger(__name__)

_NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

# An unreachable collector must not delay the end of the process.
_FLUSH_TIMEOUT: Final = 1.0  # seconds


class TracingNotInstalled(InputError):
    """Traces are requested, but OpenTelemetry is not installed."""

    def __str__(self) -> str:
        return (
            "--otel-endpoint needs OpenTelemetry, which is not installed; "
            "pip install 'nri-resmgr[otel]' adds it"
        )


@dataclass(eq=False)
class BadSampling(InputError):
    """``--otel-sampling`` is not a fraction."""

    text: str

    def __str__(self) -> str:
        return f"--otel-sampling: {self.text!r}: expected a number from 0 to 1"


@dataclass(eq=False)
class BadCollector(InputError):
    """``--otel-endpoint`` is not a URL."""

    text: str

    def __str__(self) -> str:
        return f"--otel-endpoint: {self.text!r}: expected http://HOST:PORT or https://"


def check_tracing_flags(endpoint: str, sampling: str, *, has_variables: bool) -> bool:
    """Check the flags, and return whether to trace.

    Args:
        endpoint: ``--otel-endpoint``.
        sampling: ``--otel-sampling``.
        has_variables: Whether variables have the collector's address. They alone
            are no reason to refuse: a cluster may set them for all pods.

    Raises:
        BadCollector: The endpoint is not a URL.
        BadSampling: The fraction is not a number from 0 to 1.
        TracingNotInstalled: There is an endpoint, but no OpenTelemetry.
    """
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise BadCollector(endpoint)
    if sampling and not 0 <= _fraction(sampling) <= 1:
        raise BadSampling(sampling)
    if not (endpoint or has_variables):
        return False
    if all(map(_is_installed, _NEEDED)):
        return True
    if endpoint:
        raise TracingNotInstalled
    log.warning("tracing.not-installed", extra="otel")
    return False


async def send_traces(tracing: Tracing, endpoint: str, sampling: str) -> None:
    """Send spans until cancelled, then remaining ones for up to a second.

    Args:
        tracing: Makes the spans.
        endpoint: The collector's URL; empty for the ``OTEL_`` variables'.
        sampling: The fraction of requests to trace; empty likewise.
    """
    provider = await asyncio.to_thread(new_provider, endpoint, sampling)
    tracing.send_to(sender(provider))
    log.info("tracing.started", endpoint=endpoint or "as OTEL_ variables say")
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        tracing.send_to(lambda _: None)
        await _end(provider)


def new_provider(endpoint: str, sampling: str) -> Any:
    """Import the libraries, which takes 0.1 s, and set them up."""
    # An optional dependency.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace import sampling as samplers
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = [_LogHandler()], False
    sampler = None
    if sampling:
        sampler = samplers.ParentBased(samplers.TraceIdRatioBased(_fraction(sampling)))
    # OpenTelemetry's own variables override these.
    facts = {"service.name": "nri-resmgr", "service.version": our_version()}
    if node := os.environ.get("NODE_NAME"):
        facts["k8s.node.name"] = node
    provider = TracerProvider(sampler, Resource.create(facts), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=_traces_url(endpoint) if endpoint else None)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def sender(provider: Any) -> Callable[[Span], None]:
    """Make a function that converts spans to OpenTelemetry's and sends them."""
    # An optional dependency.
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )

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


async def _end(provider: Any) -> None:
    """Send remaining spans; the libraries would retry for half a minute."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(ended.set)

    # A daemon thread: the process waits for threads of the loop's pool.
    threading.Thread(target=end, daemon=True).start()
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), _FLUSH_TIMEOUT)


def _traces_url(endpoint: str) -> str:
    scheme, _, rest = endpoint.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}/{path or 'v1/traces'}"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _fraction(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
