"""Metrics of partitions of the kernel, computed at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series, single
from nri_resmgr.app.running.by_cgroup import ByCgroup
from nri_resmgr.app.running.delivery import PinDelivery
from nri_resmgr.app.running.partitions import Partitions


def series_of_partitions(delivery: PinDelivery) -> Iterator[Series]:
    """Yield counts of partitions; nothing where cgroups are not written."""
    if not isinstance(delivery, ByCgroup):
        return
    found = delivery.partitions
    if found.is_active:
        counts = Counter(_state(found, key) for key in found.requests())
        states = ("in-force", "refused", "waiting")
        yield Series(table.PARTITIONS, {(one,): counts[one] for one in states})
    yield single(table.PARTITIONS_REFUSED, found.counts.refused)


def _state(partitions: Partitions, container: str) -> str:
    if partitions.is_valid(container):
        return "in-force"
    return "refused" if container in partitions.results else "waiting"
