"""The table of alerts."""

from __future__ import annotations

from tests.docs.markdown import code, escaped, table
from tests.monitoring.rules import ALERTS


def alerts(_: str) -> str:
    """Write every alert with its severity, its expression, and how long it holds."""
    return table(
        ("alert", "severity", "fires while", "for"),
        (
            (
                f"[{name}](#{name.lower()})",
                one["labels"]["severity"],
                escaped(code(one["expr"])),
                one.get("for", ""),
            )
            for name, one in ALERTS.items()
        ),
    )
