"""Flags of traces, and whether OpenTelemetry is installed, which extras add."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from nri_resmgr.log import Logger
from nri_resmgr.values import InputError

log = Logger(__name__)

_SDK: Final = "opentelemetry.sdk"
_EXPORTERS: Final = "opentelemetry.exporter.otlp.proto"


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
    if endpoint and missing_extra():
        raise TracingNotInstalled
    return is_tracing_installed()


def is_tracing_installed(*, by_grpc: bool = False) -> bool:
    """Return whether OpenTelemetry is installed, which is logged if not.

    Args:
        by_grpc: As for `missing_extra`.
    """
    if extra := missing_extra(by_grpc=by_grpc):
        log.warning("tracing.not-installed", extra=extra)
    return not extra


def missing_extra(*, by_grpc: bool = False) -> str:
    """Return the extra that adds OpenTelemetry and its exporters; empty if it has.

    Args:
        by_grpc: Whether those over gRPC are needed, instead of those over HTTP.
    """
    extra, protocol = ("otel-grpc", "grpc") if by_grpc else ("otel", "http")
    needed = (_SDK, f"{_EXPORTERS}.{protocol}")
    return "" if all(map(_is_installed, needed)) else extra


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
