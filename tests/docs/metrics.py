"""The table of metrics."""

from __future__ import annotations

from nri_resmgr.app.metrics.table import METRICS
from tests.docs.markdown import code, codes, escaped, table


def metrics(_: str) -> str:
    """Write every metric with its kind, labels and help."""
    return table(
        ("metric", "kind", "labels", "meaning"),
        (
            (code(one.name), one.kind.value, codes(one.labels), escaped(one.help))
            for one in METRICS
        ),
    )
