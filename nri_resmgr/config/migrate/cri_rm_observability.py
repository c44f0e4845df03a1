"""Converts the modules ``logger``, ``instrumentation`` and ``dump`` of CRI-RM."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.log_sources import read_log_debug
from nri_resmgr.config.migrate.section import Section
from nri_resmgr.values.documents import JsonObject

_UNKNOWN: Final = "unknown key"

_MILLION: Final = 1_000_000
_SAMPLING: Final = {"disabled": 0.0, "production": 0.1, "testing": 1.0}

_NO_SOURCE: Final = "no component of ours is like this source"
_KLOG: Final = "the flags --log-level, --log-format and --log-to of `run`"
_SKIP: Final = "skip_headers"
_JAEGER: Final = (
    "spans are sent by OTLP over HTTP, which Jaeger accepts at port 4318: "
    "instrumentation.tracingCollector: http://HOST:4318"
)
_SAMPLED: Final = "counts once there is an instrumentation.tracingCollector"
_PERIOD: Final = "counts for metrics in instrumentation.metrics.polled only"

_MESSAGES: Final = "message"
_DUMP: Final = (
    "requests are logged in one line each, by debug of `message`; whole messages are "
    "recorded by the flag --record of `run`"
)
_QUIET: Final = ("off", "suppress")


def read_observability(top: Section) -> JsonObject:
    """Read the three modules into ``log`` and ``instrumentation`` of a spec."""
    log = _logger(top.section("logger"))
    if _dumps(top.section("dump")):
        debug = log.setdefault("debug", [])
        debug += [] if _MESSAGES in debug else [_MESSAGES]
    use = _instrumentation(top.section("instrumentation"))
    found: JsonObject = {"log": log, "instrumentation": use}
    return {key: value for key, value in found.items() if value}


def _logger(section: Section) -> JsonObject:
    found: JsonObject = {}
    if debug := section.text("Debug", ""):
        items = _items(debug, section)
        if items:
            found["debug"] = items
    if section.take("LogSource"):
        found["source"] = True
    klog = section.section("Klog")
    if (skip := klog.take(_SKIP)) is not None:
        found["klog"] = {_SKIP: skip}
    klog.note_rest(_KLOG)
    section.note_rest(_UNKNOWN)
    return found


def _items(debug: str, section: Section) -> list[str]:
    """Return the sources, each in an item, with ``:off`` where they are off."""
    found: list[str] = []
    state = "on"
    for text in filter(None, (one.strip() for one in debug.split(","))):
        first, has_colon, last = text.partition(":")
        state, name = (first, last) if has_colon else (state, text)
        item = name if state == "on" else f"{name}:{state}"
        if read_log_debug(item, section.at("Debug")):
            found.append(item)
        else:
            section.note("Debug", f"{name}: {_NO_SOURCE}")
    return found


def _instrumentation(section: Section) -> JsonObject:
    found = section.copy(
        {
            "HTTPEndpoint": "httpEndpoint",
            "PrometheusExport": "prometheusExport",
            "ReportPeriod": "reportPeriod",
        }
    )
    if "reportPeriod" in found:
        section.note("ReportPeriod", _PERIOD)
    if (sampling := section.take("Sampling")) is not None:
        found["samplingRatePerMillion"] = _per_million(sampling, section)
        section.note("Sampling", _SAMPLED)
    for key in ("JaegerCollector", "JaegerAgent"):
        section.give_up(key, _JAEGER)
    section.note_rest(_UNKNOWN)
    return {key: value for key, value in found.items() if value not in ("", None)}


def _per_million(sampling: object, section: Section) -> int:
    if isinstance(sampling, str):
        sampling = _SAMPLING.get(sampling.lower(), sampling)
    try:
        fraction = float(str(sampling))
    except ValueError:
        fraction = -1.0
    if isinstance(sampling, bool) or not 0 <= fraction <= 1:
        known = " or ".join(_SAMPLING)
        why = f"expected {known} or a number from 0 to 1, not {sampling!r}"
        raise BadSetting(section.at("Sampling"), why)
    return round(fraction * _MILLION)


def _dumps(section: Section) -> bool:
    """Return whether messages of some method were logged."""
    config = section.text("Config", "")
    is_off = bool(section.take("Disabled"))
    section.give_up("File", "the flag --record of `run` names the file")
    section.take("Debug")
    section.note_rest(_UNKNOWN)
    wanted = any(
        one.strip() and one.strip().partition(":")[0] not in _QUIET
        for one in config.split(",")
    )
    if not wanted or is_off:
        return False
    section.note("Config", _DUMP)
    return True
