"""The table of the kinds of events."""

from __future__ import annotations

from typing import get_args

from nri_resmgr.app.observers.event_kinds import EventKind
from tests.docs.log_events import event_names
from tests.docs.markdown import merged


def event_kinds(body: str) -> str:
    """Write all kinds, and whether the log has them; their meanings are by hand."""
    logged = event_names()
    return merged(
        body,
        ("kind", "in the log", "meaning"),
        {
            kind: ("yes" if kind in logged else "", None)
            for kind in sorted(get_args(EventKind))
        },
    )
