"""Durations in documents, as Go writes them: ``30s``, ``1h30m``."""

from __future__ import annotations

import re
from typing import Final

from nri_resmgr.config.table import Table

# Go's time.ParseDuration.
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_DURATION: Final = re.compile(rf"[+]?(?:{_PART.pattern})+|0", re.ASCII)
_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_LONGEST: Final = 24 * 3600.0  # seconds; a longer period would mean "never"


def read_seconds(table: Table, key: str, default: float) -> float:
    """Read a duration in seconds, at most a day."""
    text = table.form(key, _DURATION, "a duration such as 30s")
    if not text:
        return default
    total = sum(float(n) * _UNITS[unit] for n, unit in _PART.findall(text))
    return min(total, _LONGEST)
