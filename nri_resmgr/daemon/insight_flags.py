"""What the command line says of metrics and traces, judged before the start."""

from __future__ import annotations

import argparse
import os
from typing import Final

# Any of these says where traces go, as for every program that makes some.
COLLECTOR_VARIABLES: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)


def judge_insight(options: argparse.Namespace) -> bool:
    """Judge the flags; return whether there are to be traces.

    Nothing is imported for those who ask for neither metrics nor traces.

    Raises:
        BadEndpoint: ``--http-endpoint`` is none.
        InputError: See `nri_resmgr.daemon.tracing.judge_tracing`.
    """
    if options.http_endpoint:
        from nri_resmgr.daemon.endpoint import read_endpoint

        read_endpoint(options.http_endpoint)
    told = any(os.environ.get(name) for name in COLLECTOR_VARIABLES)
    if not (told or options.otel_endpoint or options.otel_sampling):
        return False
    from nri_resmgr.daemon.tracing import judge_tracing

    return judge_tracing(options.otel_endpoint, options.otel_sampling, told=told)
