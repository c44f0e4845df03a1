"""Amounts and times as text."""

from __future__ import annotations

from typing import Final

from nri_resmgr.values import CpuSet, MilliCpus
from nri_resmgr.values.quantities import format_cpus

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def size_text(amount: int | None) -> str:
    """Format bytes with a binary unit and at most one digit after the point.

    >>> size_text(17179869184), size_text(1536 << 20), size_text(0), size_text(None)
    ('16 GiB', '1.5 GiB', '0 B', '-')
    """
    if amount is None:
        return "-"
    size, unit = float(amount), 0
    # Rounded first: 1023.96 KiB would be shown as 1024 KiB.
    while round(size, 1) >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


def cpus_text(amount: int | None) -> str:
    """Format thousandths of a CPU as Kubernetes does.

    >>> cpus_text(2000), cpus_text(1500), cpus_text(None)
    ('2', '1500m', '-')
    """
    return "-" if amount is None else format_cpus(MilliCpus(amount))


def duration_text(seconds: int) -> str:
    """Format a time span with its two largest units.

    >>> duration_text(59), duration_text(3725), duration_text(200000)
    ('59 s', '1 h 2 min', '2 d 7 h')
    """
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min {seconds % _MINUTE} s"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return f"{seconds // _DAY} d {seconds % _DAY // _HOUR} h"


def count_cpus(cpus: str) -> int:
    """Count the CPUs of a list."""
    return len(CpuSet.parse(cpus))
