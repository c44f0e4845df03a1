"""Traces to an OpenTelemetry collector; needs the extra ``nri-resmgr[otel]``."""

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

# A collector that is away must not hold up the end of the process.
_LAST_WORDS: Final = 1.0  # seconds


class TracingNotInstalled(InputError):
    """Traces are asked for, and the libraries are not there."""

    def __str__(self) -> str:
        return (
            "--otel-endpoint needs OpenTelemetry, which is not installed; "
            "pip install 'nri-resmgr[otel]' adds it"
        )


@dataclass(eq=False)
class BadSampling(InputError):
    """``--otel-sampling`` is no share of requests."""

    text: str

    def __str__(self) -> str:
        return f"--otel-sampling: {self.text!r}: expected a number from 0 to 1"


@dataclass(eq=False)
class BadCollector(InputError):
    """``--otel-endpoint`` is no URL."""

    text: str

    def __str__(self) -> str:
        return f"--otel-endpoint: {self.text!r}: expected http://HOST:PORT or https://"


def judge_tracing(endpoint: str, sampling: str, *, told: bool) -> bool:
    """Judge the flags, and say whether there are to be traces.

    Args:
        endpoint: ``--otel-endpoint``.
        sampling: ``--otel-sampling``.
        told: Whether variables say where traces go. These alone are not worth a
            refusal: a cluster may set them for everybody.

    Raises:
        BadCollector: The endpoint is no URL.
        BadSampling: The share is no number from 0 to 1.
        TracingNotInstalled: There is an endpoint, and the libraries are missing.
    """
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise BadCollector(endpoint)
    if sampling and not 0 <= _share(sampling) <= 1:
        raise BadSampling(sampling)
    if not (endpoint or told):
        return False
    if all(map(_is_installed, _NEEDED)):
        return True
    if endpoint:
        raise TracingNotInstalled
    log.warning("tracing.not-installed", extra="otel")
    return False


async def send_traces(tracing: Tracing, endpoint: str, sampling: str) -> None:
    """Send what is traced until cancelled, then what is left for a second.

    Args:
        tracing: Has the spans.
        endpoint: The collector's URL; empty for what the ``OTEL_`` variables say.
        sampling: The share of requests; empty likewise.
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
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace import sampling as samplers
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = [_ToOurLog()], False
    sampler = None
    if sampling:
        sampler = samplers.ParentBased(samplers.TraceIdRatioBased(_share(sampling)))
    # Variables of OpenTelemetry's own go before these.
    facts = {"service.name": "nri-resmgr", "service.version": our_version()}
    if node := os.environ.get("NODE_NAME"):
        facts["k8s.node.name"] = node
    provider = TracerProvider(sampler, Resource.create(facts), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=_traces_url(endpoint) if endpoint else None)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def sender(provider: Any) -> Callable[[Span], None]:
    """Make what turns our spans into OpenTelemetry's."""
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


class _ToOurLog(logging.Handler):
    """Takes what the libraries have to complain about; they drop repetitions."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log it as ours."""
        log.warning("tracing.failed", why=record.getMessage())


async def _end(provider: Any) -> None:
    """Send what is left; a collector that is away would be tried for half a minute."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the loop is no more: we took too long
            loop.call_soon_threadsafe(ended.set)

    # Not one of the loop's own threads: the end of the process waits for those.
    threading.Thread(target=end, daemon=True).start()
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), _LAST_WORDS)


def _traces_url(endpoint: str) -> str:
    scheme, _, rest = endpoint.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}/{path or 'v1/traces'}"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package that it is in
        return False


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
