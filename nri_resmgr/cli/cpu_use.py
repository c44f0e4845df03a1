"""How busy CPUs are, between two answers of ``GET /v1/host``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from nri_resmgr.host.cpu_time import Ticks, busy_between
from nri_resmgr.values import CpuSet
from nri_resmgr.values.documents import JsonObject

CpuUse: TypeAlias = Mapping[int, int]
"""Thousandths of the time in which a CPU was busy, by CPU, as far as it is known."""


def use_between(before: JsonObject | None, after: JsonObject) -> CpuUse:
    """Return the use of CPUs between two answers; without the first, that of none."""
    return busy_between(_ticks(before), _ticks(after)) if before else {}


def _ticks(host: JsonObject) -> Ticks:
    return {one["id"]: (one["busy"], one["total"]) for one in host["cpus"]}


def mean_use(use: CpuUse, cpus: CpuSet) -> int | None:
    """Return the mean use of CPUs in thousandths; None where that of none is known.

    >>> mean_use({0: 1000, 1: 500}, CpuSet.of(0, 1, 2)), mean_use({}, CpuSet.of(0))
    (750, None)
    """
    known = [use[cpu] for cpu in cpus if cpu in use]
    return sum(known) // len(known) if known else None


def use_text(thousandths: int | None) -> str:
    """Format a use in whole per cent.

    >>> use_text(996), use_text(4), use_text(None)
    ('100%', '0%', '-')
    """
    return "-" if thousandths is None else f"{(thousandths + 5) // 10}%"
