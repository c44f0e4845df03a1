"""Reads ``log`` and ``instrumentation``, which documents of all kinds may have."""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

import msgspec

from nri_resmgr.config.durations import read_seconds
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.log_sources import MOST_ITEMS, read_log_debug
from nri_resmgr.config.table import Table

_LOG: Final = "log"
_USE: Final = "instrumentation"

_INSTRUMENTATION: Final = (
    "httpEndpoint",
    "prometheusExport",
    "metricsExporter",
    "reportPeriod",
    "metrics",
    "samplingRatePerMillion",
    "tracingCollector",
    "logExporter",
    "logExportPeriod",
)
_PROMETHEUS: Final = "prometheus"
_OTLP_HTTP: Final = "otlp-http"
_OTLP_GRPC: Final = "otlp-grpc"
_EXPORTERS: Final = (_OTLP_HTTP, _OTLP_GRPC)
# Of a collector's address. Each alone stands for the default collector; none of them
# encrypts. Source: nri-plugins, pkg/instrumentation/tracing/exporter.go.
_OF_GRPC: Final = (_OTLP_GRPC, "grpc")
_PLAINTEXT: Final = (_OTLP_HTTP, "http", *_OF_GRPC)

_KLOG: Final = (
    "add_dir_header",
    "alsologtostderr",
    "alsologtostderrthreshold",
    "legacy_stderr_threshold_behavior",
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
    "stderrthreshold",
    "v",
    "vmodule",
)
_NO_HEADERS: Final = "skip_headers"
# Values that ask for what is so here in any case.
_NOTHING: Final = (False, 0, "", "0", "false", "False")

# As the processor of log records of OpenTelemetry's SDK for Go.
_LOG_PERIOD: Final = 1.0  # seconds

_MILLION: Final = 1_000_000
_MOST_GLOBS: Final = 32
# Of the 64 that the log has; others come from flags and clients.
_MOST_RULES: Final = 40


# What Go listens on: without an address on all of them, and "localhost" by name.
_ENDPOINT: Final = re.compile(
    r"(?P<address>|localhost|[0-9.]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})"
)
_EXAMPLE: Final = (
    "[ADDRESS]:PORT, such as :8891 for every address of the host or 127.0.0.1:8891"
)
_LAST_PORT: Final = 65535
_EVERY: Final = "[::]"
_LOCALHOST: Final = "127.0.0.1"

Rules: TypeAlias = tuple[tuple[str, bool], ...]


class LogUse(msgspec.Struct, frozen=True):
    """The log as a document wants it.

    Attributes:
        debug: Patterns of components, and whether debug of these is on; a later one
            overrides earlier ones.
        source: Whether lines name the component that wrote them.
        headers: Whether lines of text begin with their time and level.
    """

    debug: Rules = ()
    source: bool = False
    headers: bool = True


class InstrumentationUse(msgspec.Struct, frozen=True):
    """Metrics, health, traces and the export of the log as a document wants them.

    Attributes:
        endpoint: ``ADDRESS:PORT`` of health, and metrics; empty for none.
        serves_metrics: Whether metrics are served there.
        sends_metrics: Whether metrics are sent, in each period, to the collector of
            OpenTelemetry's variables.
        metrics_by_grpc: Whether over gRPC, instead of HTTP.
        enabled: Globs of the groups of metrics that are served; None for all.
        polled: Globs of those that are computed once in a period.
        period: That of polled metrics and of those that are sent, in seconds.
        sends_traces: Whether requests are traced.
        collector: The URL for traces; empty for the one of OpenTelemetry's variables.
        traces_by_grpc: Whether spans go there over gRPC, instead of HTTP.
        sampling: The fraction of requests to trace; empty for the one of
            OpenTelemetry's variables.
        log_period: Seconds in which lines of the log are gathered that are then sent to
            the collector of OpenTelemetry's variables; None to send none.
        log_by_grpc: Whether over gRPC, instead of HTTP.
    """

    endpoint: str = ""
    serves_metrics: bool = False
    sends_metrics: bool = False
    metrics_by_grpc: bool = False
    enabled: tuple[str, ...] | None = None
    polled: tuple[str, ...] = ()
    period: float = 30.0
    sends_traces: bool = False
    collector: str = ""
    traces_by_grpc: bool = False
    sampling: str = ""
    log_period: float | None = None
    log_by_grpc: bool = False


def read_observability(spec: Table) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read the sections of a spec that has no other keys.

    Returns:
        Fields of `PolicyConfig`, and the paths of what has no effect.

    Raises:
        BadSetting: A setting is not as nri-plugins documents it.
    """
    found: dict[str, Any] = {}
    log, of_log = _log(spec.table(_LOG, "debug", "source", "klog"))
    use, of_use = _instrumentation(spec.table(_USE, *_INSTRUMENTATION))
    # A document that sets nothing leaves all to flags, as one without the section.
    if log != LogUse():
        found["log"] = log
    if use != InstrumentationUse():
        found["instrumentation"] = use
    return found, (*of_log, *of_use)


def _log(log: Table) -> tuple[LogUse, list[str]]:
    items, unused = log.texts("debug"), []
    if len(items) > MOST_ITEMS:
        why = f"expected at most {MOST_ITEMS} items, not {len(items)}"
        raise BadSetting(log.at("debug"), why)
    rules: dict[str, bool] = {}
    for place, item in enumerate(items):
        path = f"{log.at('debug')}[{place}]"
        more = read_log_debug(item, path)
        for pattern, is_on in more:
            rules.pop(pattern, None)
            rules[pattern] = is_on
        if not more:
            unused.append(path)
    if len(rules) > _MOST_RULES:
        why = f"expected at most {_MOST_RULES} components, not {len(rules)}"
        raise BadSetting(log.at("debug"), why)
    # Flags of klog: numbers and booleans may be quoted or not.
    klog = log.table("klog", *_KLOG)
    values = {key: klog.raw(key, str, int, bool) for key in _KLOG}
    for key in klog.rows:
        value = values[key]
        if not isinstance(value, str | int):
            raise BadSetting(klog.at(key), "expected text, a number, true or false")
        if key != _NO_HEADERS and value not in _NOTHING:
            unused.append(klog.at(key))
    headers = str(klog.rows.get(_NO_HEADERS, False)).lower() not in ("true", "1", "t")
    return LogUse(tuple(rules.items()), log.flag("source"), headers), unused


def _instrumentation(table: Table) -> tuple[InstrumentationUse, list[str]]:
    exports = table.flag("prometheusExport")
    exporter = table.choice("metricsExporter", (_PROMETHEUS, *_EXPORTERS), "")
    of_log = table.choice("logExporter", _EXPORTERS, "")
    log_period = read_seconds(table, "logExportPeriod", _LOG_PERIOD)
    text = table.text("tracingCollector")
    collector = _collector(text)
    unused = [] if collector is not None else [table.at("tracingCollector")]
    sampled = table.number("samplingRatePerMillion", 0, _MILLION, 0)
    metrics = table.table("metrics", "enabled", "polled")
    use = InstrumentationUse(
        endpoint=_endpoint(table),
        serves_metrics=exports or exporter == _PROMETHEUS,
        sends_metrics=exporter in _EXPORTERS,
        metrics_by_grpc=exporter == _OTLP_GRPC,
        enabled=_globs(metrics, "enabled") if "enabled" in metrics.rows else None,
        polled=_globs(metrics, "polled"),
        period=read_seconds(table, "reportPeriod", 30.0),
        # As there, the default is to trace nothing.
        sends_traces=bool(text) and collector is not None and sampled > 0,
        collector=collector or "",
        traces_by_grpc=text.partition("://")[0] in _OF_GRPC,
        sampling=f"{sampled / _MILLION:g}" if sampled else "",
        log_period=log_period if of_log else None,
        log_by_grpc=of_log == _OTLP_GRPC,
    )
    return use, unused


def _globs(table: Table, key: str) -> tuple[str, ...]:
    found = table.texts(key)
    if len(found) > _MOST_GLOBS:
        why = f"expected at most {_MOST_GLOBS} items, not {len(found)}"
        raise BadSetting(table.at(key), why)
    return found


def _endpoint(table: Table) -> str:
    """Read an endpoint as ``ADDRESS:PORT``, which is the same on any host."""
    text = table.form("httpEndpoint", _ENDPOINT, _EXAMPLE, numbers=False)
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        return ""
    if int(match["port"]) > _LAST_PORT:
        why = f"expected {_EXAMPLE}, not {text!r}"
        raise BadSetting(table.at("httpEndpoint"), why)
    address = match["address"] or _EVERY
    return f"{_LOCALHOST if address == 'localhost' else address}:{match['port']}"


def _collector(text: str) -> str | None:
    """Return the URL to send spans to, empty for the default; None for another way."""
    scheme, has_address, address = text.partition("://")
    if text in ("", *_PLAINTEXT):
        return ""
    if not (has_address and address):
        return None
    if scheme in _PLAINTEXT:
        return f"http://{address}"
    return text if scheme == "https" else None
