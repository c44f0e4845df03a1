"""Flags of traces."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.daemon.otel_installed import missing_extra
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError

log = Logger(__name__)


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
    extra = missing_extra()
    if extra and endpoint:
        raise TracingNotInstalled
    if extra:
        log.warning("tracing.not-installed", extra=extra)
    return not extra


def _fraction(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
