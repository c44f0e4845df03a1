"""Validates the settings of nri-plugins' documents that have no effect here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from nri_resmgr.config.cpu_classes import read_old_cpu_classes
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table

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
_EXPORTERS: Final = ("otlp-http", "otlp-grpc")
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
_MILLION: Final = 1_000_000

# Go's time.ParseDuration.
_DURATION: Final = re.compile(
    r"[+]?(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h)"
    r"(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))*|0",
    re.ASCII,
)


def read_foreign(spec: Table) -> tuple[str, ...]:
    """Validate the parts of a spec that have no effect here.

    Returns:
        The paths of what is set. What is off is not listed.

    Raises:
        BadSetting: A setting is not as nri-plugins documents it.
    """
    found = read_services(spec)
    # Only the balloons policy uses the CPU classes of old documents.
    old = spec.table("control", "cpu", "rdt", "blockio").table("cpu", "classes")
    return (*found, *_set_keys(old, "classes"))


def read_services(spec: Table) -> list[str]:
    """Validate settings of other services of nri-plugins; see `read_foreign`."""
    return [*_agent(spec), *_log(spec), *_instrumentation(spec), *_control(spec)]


def _set_keys(table: Table, *keys: str) -> Iterator[str]:
    return (table.at(key) for key in keys if table.rows.get(key))


def _flags(table: Table, *keys: str) -> Iterator[str]:
    for key in keys:
        table.flag(key, default=False)
    return _set_keys(table, *keys)


def _agent(spec: Table) -> Iterable[str]:
    keys = ("nodeResourceTopology", "podResourceAPI")
    dra = ("enabled", "sharedCounters")
    return [
        *_flags(spec.table("agent", *keys), *keys),
        *_flags(spec.table("dra", *dra), *dra),
    ]


def _log(spec: Table) -> Iterable[str]:
    log = spec.table("log", "debug", "source", "klog")
    log.texts("debug", ())
    log.flag("source", default=False)
    # Flags of klog: numbers and booleans may be quoted or not.
    klog = log.table("klog", *_KLOG)
    for key, value in klog.rows.items():
        if not isinstance(value, str | int):
            raise BadSetting(klog.at(key), "expected text, a number, true or false")
    return _set_keys(log, "debug", "source", "klog")


def _instrumentation(spec: Table) -> Iterable[str]:
    table = spec.table("instrumentation", *_INSTRUMENTATION)
    table.flag("prometheusExport", default=False)
    table.number("samplingRatePerMillion", 0, _MILLION, 0)
    for key in ("httpEndpoint", "tracingCollector"):
        table.text(key, "")
    for key in ("reportPeriod", "logExportPeriod"):
        period = table.text(key, "0")
        if not _DURATION.fullmatch(period):
            raise BadSetting(
                table.at(key), f"expected a duration such as 30s, not {period!r}"
            )
    table.choice("metricsExporter", ("prometheus", *_EXPORTERS), "")
    table.choice("logExporter", _EXPORTERS, "")
    metrics = table.table("metrics", "enabled", "polled")
    for key in ("enabled", "polled"):
        metrics.texts(key, ())
    return _set_keys(table, *_INSTRUMENTATION)


def _control(spec: Table) -> Iterable[str]:
    control = spec.table("control", "cpu", "rdt", "blockio")
    control.table("cpu", "classes")
    read_old_cpu_classes(spec)
    return ()  # effective or not, by policy: `read_foreign` lists it
