"""Checks of the flags for metrics and traces, before the start."""

from __future__ import annotations

import argparse
import os
from typing import Final

# The standard variables of OpenTelemetry for the collector's address.
COLLECTOR_VARIABLES: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)


def check_insight_flags(options: argparse.Namespace) -> bool:
    """Check the flags; return whether to trace.

    Imports nothing without metrics and traces.

    Raises:
        BadEndpoint: ``--http-endpoint`` is not an address and port.
        InputError: See `nri_resmgr.daemon.tracing.check_tracing_flags`.
    """
    if options.http_endpoint:
        from nri_resmgr.daemon.endpoint import read_endpoint

        read_endpoint(options.http_endpoint)
    has_variables = any(os.environ.get(name) for name in COLLECTOR_VARIABLES)
    if not (has_variables or options.otel_endpoint or options.otel_sampling):
        return False
    from nri_resmgr.daemon.tracing import check_tracing_flags

    return check_tracing_flags(
        options.otel_endpoint, options.otel_sampling, has_variables=has_variables
    )
