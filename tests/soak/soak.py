"""A busy daemon, measured and checked in intervals."""

from __future__ import annotations

import statistics
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from tests.soak import invariants
from tests.soak.daemon import Daemon, Size, running
from tests.soak.node import BusyNode

_LOOK: Final = 1_000  # events between two looks at the invariants
_RECONFIGURE: Final = 10_000
_RECONNECT: Final = 25_000
_SETTLING: Final = 3.0  # seconds until the plugin has sent pending updates


@attrs.frozen
class Figures:
    """Of a daemon after so many events.

    Attributes:
        events: How many there were.
        latency: Seconds for an event, the median since the last figures.
        late: The 99th percentile of the same.
        cpu: Seconds of a CPU for an event, the mean since the last figures.
        size: Of the process.
        series: Of its metrics.
        objects: By type.
        refused: Containers that were not created, so far.
    """

    events: int
    latency: float
    late: float
    cpu: float
    size: Size
    series: int
    objects: dict[str, int]
    refused: int


def soak(folder: Path, events: int, every: int, seed: int = 17) -> Iterator[Figures]:
    """Run a daemon through so many events; yield figures in intervals.

    Raises:
        AssertionError: An invariant did not hold.
    """
    with running(folder) as daemon:
        node = BusyNode(daemon.peer, seed)
        node.reconnect()
        times, used = array("d"), daemon.size().seconds
        for number in range(1, events + 1):
            times.append(node.step())
            _disturb(daemon, node, number)
            if number % _LOOK == 0:
                _look(daemon, node, number)
            if number % every == 0:
                figures = _figures(daemon, node, times, used)
                yield attrs.evolve(figures, events=number)
                times, used = array("d"), figures.size.seconds


def _disturb(daemon: Daemon, node: BusyNode, number: int) -> None:
    if number % _RECONNECT == 0:
        node.reconnect()
    if number % _RECONFIGURE == 0:
        daemon.configure(number // _RECONFIGURE)


def _look(daemon: Daemon, node: BusyNode, number: int) -> None:
    """Check the invariants, with patience for updates of timers and documents."""
    until = time.monotonic() + _SETTLING
    while True:
        daemon.peer.settle(0)
        try:
            invariants.check(daemon.control.get("/v1/state"), node)
        except AssertionError as error:
            if time.monotonic() > until:
                error.add_note(f"after {number} events; {daemon.complaints()}")
                raise
            daemon.peer.settle(0.05)
            node.resize()
        else:
            return


def _figures(
    daemon: Daemon, node: BusyNode, times: array[float], used: float
) -> Figures:
    objects = daemon.objects()  # collects garbage first, and returns its memory
    size = daemon.size()
    return Figures(
        events=0,
        latency=statistics.median(times),
        late=statistics.quantiles(times, n=100)[-1],
        cpu=(size.seconds - used) / len(times),
        size=size,
        series=daemon.series(),
        objects=objects,
        refused=node.refused,
    )
