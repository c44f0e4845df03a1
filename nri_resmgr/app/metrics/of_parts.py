"""Metrics of the parts of the daemon, computed at each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic

from nri_resmgr.app.background.supervisor import Part
from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series


def series_of_parts(parts: Iterable[Part]) -> Iterator[Series]:
    """Yield the failures of all parts, and what is wrong with them now."""
    parts, now = tuple(parts), monotonic()
    failing = [one for one in parts if one.why]
    yield Series(table.PART_FAILURES, {(one.name,): one.restarts for one in parts})
    yield Series(
        table.PART_FAILING,
        {(one.name,): round(now - one.since, 3) if one.why else 0 for one in parts},
    )
    yield Series(
        table.PART_NEXT_TRY,
        {(one.name,): round(max(0.0, one.next_try - now), 3) for one in failing},
    )
    yield Series(
        table.PART_HANGING, {(one.name,): round(one.hangs, 3) for one in parts}
    )
