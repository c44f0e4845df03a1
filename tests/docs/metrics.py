"""The table of metrics."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.agent import metrics as of_agent
from nri_resmgr.app.metrics.table import METRICS
from nri_resmgr.app.metrics.text import Metric
from nri_resmgr.webhook import metrics as of_webhook
from tests.docs.markdown import code, codes, escaped, table


def metrics(_: str) -> str:
    """Write every metric of the daemon with its kind, labels and help."""
    return _table(METRICS)


def agent_metrics(_: str) -> str:
    """Write every metric that only the agent has."""
    return _table(of_agent.METRICS)


def webhook_metrics(_: str) -> str:
    """Write every metric that only the webhook has."""
    return _table(of_webhook.METRICS)


def _table(found: Iterable[Metric]) -> str:
    return table(
        ("metric", "kind", "labels", "meaning"),
        (
            (code(one.name), one.kind.value, codes(one.labels), escaped(one.help))
            for one in found
        ),
    )
