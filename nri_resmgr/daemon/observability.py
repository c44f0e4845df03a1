"""Log, metrics and traces as flags and the configuration in force want them.

Flags and their variables take precedence over the document; a change of the document
takes effect while the daemon runs.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from nri_resmgr.app.configuration.status import Setting
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.log.copies import line_copies
from nri_resmgr.log.levels import ALL, levels
from nri_resmgr.log.line_style import line_style

if TYPE_CHECKING:  # few documents have these
    from nri_resmgr.config.observability import InstrumentationUse, LogUse

_T = TypeVar("_T")

_DEBUG: Final = "debug"
_LOG_PATH: Final = "$.spec.log"
_PATH: Final = "$.spec.instrumentation"
_VARIABLES: Final = "OTEL_ variables"

_INFO: Final = "info"

_PERIOD: Final = 30.0  # seconds


class HttpUse(msgspec.Struct, frozen=True):
    """The endpoint of metrics and health.

    Attributes:
        endpoint: ``[ADDRESS]:PORT``.
        source: Its flag, or its path in the document, for errors.
        serves_metrics: Whether metrics are served, and not only health.
        serves_page: Whether the page of the node is.
    """

    endpoint: str
    source: str
    serves_metrics: bool
    serves_page: bool = False


class TraceUse(msgspec.Struct, frozen=True):
    """The collector of traces.

    Attributes:
        endpoint: Its URL; empty for the ``OTEL_`` variables'.
        sampling: The fraction of requests to trace; empty likewise.
        by_grpc: Whether spans are sent over gRPC, instead of HTTP.
    """

    endpoint: str
    sampling: str
    by_grpc: bool = False


class ExportUse(msgspec.Struct, frozen=True):
    """An export to the collector of the ``OTEL_`` variables.

    Attributes:
        period: Seconds from one export of metrics to the next, or in which lines of the
            log are gathered.
        by_grpc: Whether over gRPC, instead of HTTP.
    """

    period: float
    by_grpc: bool = False


class Observability(msgspec.Struct, frozen=True):
    """Metrics, health and traces that are served and sent.

    Attributes:
        http: None without metrics.
        traces: None without traces.
        enabled: Globs of the metrics that are served; None for all.
        polled: Globs of those that are computed once in a period.
        period: Seconds.
        metrics: None where metrics are not sent.
        log: None where the log is not sent.
        settings: What was set, and where.
    """

    http: HttpUse | None = None
    traces: TraceUse | None = None
    enabled: tuple[str, ...] | None = None
    polled: tuple[str, ...] = ()
    period: float = _PERIOD
    metrics: ExportUse | None = None
    log: ExportUse | None = None
    settings: tuple[Setting, ...] = ()


class ObservabilityInForce(DecisionObserver):
    """Applies what flags and the configuration in force say.

    Args:
        options: The command line.
        observers: Its counters and spans are switched on where they are of use. Spans
            that are on already are wanted by flags, or variables of OpenTelemetry.

    Attributes:
        present: What is in force.
    """

    def __init__(self, options: argparse.Namespace, observers: DaemonObservers) -> None:
        self._options = options
        self._observers = observers
        self._traces_by_flags = observers.tracing.is_on
        self._log: LogUse | None = None
        self._followers: set[asyncio.Event] = set()
        self.present = Observability()

    def configured(self, config: PolicyConfig) -> None:
        """Apply another configuration."""
        if config.log != self._log:
            # Otherwise levels that a client of the control socket has set stay.
            self._log = config.log
            apply_log(self._options, config.log)
        before = self.present
        self.present = observability_of(self._options, config, self._traces_by_flags)
        counts = bool(
            self._options.health_endpoint or self.present.http or self.present.metrics
        )
        self._observers.metrics.is_on = counts
        self._observers.tracing.switch(is_on=self.present.traces is not None)
        if self.present != before:
            # They wait for the libraries, which are imported late.
            line_copies.switch(is_on=self.present.log is not None)
            for one in self._followers:
                one.set()

    async def follow(
        self,
        choose: Callable[[Observability], _T | None],
        serve: Callable[[_T], Awaitable[None]],
    ) -> None:
        """Serve what is chosen of the present state, and again when that changes.

        Args:
            choose: Returns None where there is nothing to serve.
            serve: Serves until cancelled, or until there is nothing to do.
        """
        changed = asyncio.Event()
        self._followers.add(changed)
        try:
            while True:
                changed.clear()
                chosen = choose(self.present)
                serving = asyncio.ensure_future(_served(chosen, serve))
                try:
                    while choose(self.present) == chosen:
                        await _first(serving, changed)
                        changed.clear()
                finally:
                    serving.cancel()
                    await asyncio.wait({serving})
        finally:
            self._followers.discard(changed)


async def _served(chosen: _T | None, serve: Callable[[_T], Awaitable[None]]) -> None:
    if chosen is not None:
        await serve(chosen)
    await asyncio.get_running_loop().create_future()


async def _first(serving: asyncio.Future[None], changed: asyncio.Event) -> None:
    """Wait for a change; raise the error of what is served."""
    waiting = asyncio.ensure_future(changed.wait())
    both: set[asyncio.Future[Any]] = {serving, waiting}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if serving.done():
        serving.result()


def apply_log(options: argparse.Namespace, use: LogUse | None) -> None:
    """Set levels and form of the log.

    Raises:
        BadLevel: A pattern of ``--log-debug`` is invalid.
    """
    levels.replace(_rules(options, use))
    line_style.source = use is not None and use.source
    line_style.headers = use is None or use.headers


def _rules(
    options: argparse.Namespace, use: LogUse | None
) -> Iterator[tuple[str, str]]:
    base: str = options.log_level
    # Debug is more than any level: a source that is off has that of the others.
    yield ALL, base
    for pattern, is_on in use.debug if use is not None else ():
        yield pattern, _DEBUG if is_on else base
    for pattern in options.log_debug.replace(",", " ").split():
        yield pattern, _DEBUG


def observability_of(
    options: argparse.Namespace,
    config: PolicyConfig,
    traces_by_flags: bool,  # noqa: FBT001 - a fact, not a mode
) -> Observability:
    """Combine flags and a configuration."""
    use = config.instrumentation
    found = Observability(
        http=_http(options, use),
        traces=_traces(options, use, traces_by_flags),
        settings=tuple(_settings(options, config, traces_by_flags)),
    )
    if use is None:
        return found
    return msgspec.structs.replace(
        found,
        enabled=use.enabled,
        polled=use.polled,
        period=use.period,
        metrics=_metrics(use),
        log=_log(use),
    )


def _http(
    options: argparse.Namespace, use: InstrumentationUse | None
) -> HttpUse | None:
    if options.http_endpoint:
        return HttpUse(
            options.http_endpoint,
            "--http-endpoint",
            serves_metrics=True,
            serves_page=options.http_page,
        )
    if use is None or not use.endpoint:
        return None
    return HttpUse(use.endpoint, f"{_PATH}.httpEndpoint", use.serves_metrics)


def _traces(
    options: argparse.Namespace,
    use: InstrumentationUse | None,
    traces_by_flags: bool,  # noqa: FBT001 - see above
) -> TraceUse | None:
    sampling = options.otel_sampling or (use.sampling if use else "")
    by_grpc = use is not None and use.traces_by_grpc
    if traces_by_flags:
        # Variables have no protocol: it is that of a document without a collector.
        has_other = options.otel_endpoint or (use and use.collector)
        return TraceUse(options.otel_endpoint, sampling, by_grpc and not has_other)
    if use is None or not use.sends_traces:
        return None
    return TraceUse(use.collector, sampling, by_grpc)


def _metrics(use: InstrumentationUse) -> ExportUse | None:
    if not use.sends_metrics:
        return None
    return ExportUse(use.period, use.metrics_by_grpc)


def _log(use: InstrumentationUse) -> ExportUse | None:
    if use.log_period is None:
        return None
    return ExportUse(use.log_period, use.log_by_grpc)


def _settings(
    options: argparse.Namespace,
    config: PolicyConfig,
    traces_by_flags: bool,  # noqa: FBT001 - see above
) -> Iterator[Setting]:
    use = config.instrumentation
    if http := _http(options, use):
        what = "metrics and health" if http.serves_metrics else "health only"
        what += ", and the page of the node" if http.serves_page else ""
        yield Setting("HTTP", f"{http.endpoint}: {what}", http.source)
    if use is not None and (metrics := _metrics(use)):
        text = _exported(metrics)
        yield Setting("metrics sent", text, f"{_PATH}.metricsExporter")
    if use is not None and (of_log := _log(use)):
        yield Setting("log sent", _exported(of_log), f"{_PATH}.logExporter")
    if traces := _traces(options, use, traces_by_flags):
        yield from _of_traces(options, traces, traces_by_flags)
    if use is not None and use.enabled is not None:
        yield Setting("metrics", " ".join(use.enabled), f"{_PATH}.metrics.enabled")
    if use is not None and use.polled:
        text = f"{' '.join(use.polled)} every {use.period:g} s"
        yield Setting("polled", text, f"{_PATH}.metrics.polled")
    yield from _of_log(options, config.log)


def _exported(use: ExportUse) -> str:
    return f"{_over(by_grpc=use.by_grpc)} every {use.period:g} s"


def _over(*, by_grpc: bool) -> str:
    return f"by OTLP over {'gRPC' if by_grpc else 'HTTP'}"


def _of_traces(
    options: argparse.Namespace,
    traces: TraceUse,
    traces_by_flags: bool,  # noqa: FBT001 - see above
) -> Iterator[Setting]:
    by = f"{_PATH}.tracingCollector"
    if traces_by_flags:
        by = "--otel-endpoint" if options.otel_endpoint else _VARIABLES
    where = traces.endpoint or "OpenTelemetry's default"
    yield Setting("traces", f"{where}, {_over(by_grpc=traces.by_grpc)}", by)
    if traces.sampling:
        flag, path = "--otel-sampling", f"{_PATH}.samplingRatePerMillion"
        by = flag if options.otel_sampling else path
        yield Setting("sampling", traces.sampling, by)


def _of_log(options: argparse.Namespace, use: LogUse | None) -> Iterator[Setting]:
    if options.log_level != _INFO:
        yield Setting("log level", options.log_level, "--log-level")
    if options.log_debug:
        yield Setting("debug", options.log_debug, "--log-debug")
    if use is None:
        return
    if use.debug:
        rows = (f"{name}{'' if on else ':off'}" for name, on in use.debug)
        yield Setting("debug", " ".join(rows), f"{_LOG_PATH}.debug")
    if use.source:
        yield Setting("log source", "true", f"{_LOG_PATH}.source")
    if not use.headers:
        yield Setting("log headers", "false", f"{_LOG_PATH}.klog.skip_headers")
