"""Whether OpenTelemetry and its exporters are installed, which extras add."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

_SDK: Final = "opentelemetry.sdk"
_EXPORTERS: Final = "opentelemetry.exporter.otlp.proto"


def missing_extra(*, by_grpc: bool = False) -> str:
    """Return the extra that adds OpenTelemetry and its exporters; empty if it has.

    Args:
        by_grpc: Whether those over gRPC are needed, instead of those over HTTP.
    """
    extra, protocol = ("otel-grpc", "grpc") if by_grpc else ("otel", "http")
    needed = (_SDK, f"{_EXPORTERS}.{protocol}")
    return "" if all(map(_is_found, needed)) else extra


def _is_found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False
