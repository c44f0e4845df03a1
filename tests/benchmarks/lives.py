"""Lives of a small cluster: its nodes, and pods that come and go, by a seed.

No recording of a whole cluster was available; the mix is that of a cluster for
latency-critical services beside ordinary ones, at a load at which most nodes are full
most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec

from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.values import ONE_CPU, Bytes, MilliCpus, QosClass

MIXED: Final = (
    *("1s1n8c1t",) * 8,  # virtual machines
    *("2s1n8c1t",) * 8,  # two sockets
    *("2s2n8c1t",) * 4,  # two NUMA nodes in each
)
"""The 20 machines: one, two and four NUMA nodes, 320 CPUs."""

VIRTUAL: Final = ("1s1n8c1t",) * 20
"""Those of a cluster of virtual machines, 160 CPUs."""

HOURS: Final = 2.0
"""Length of a life."""

_LIFE: Final = 600.0  # seconds of a pod, the mean of an exponential distribution
_MEMORY: Final = Bytes(256 << 20)

_EXCLUSIVE: Final = (1, 1, 2, 2, 2, 3, 4, 4, 6, 8)
_SHARED: Final = (100, 250, 300, 500, 750, 1200, 1500)


class PodLife(msgspec.Struct, frozen=True):
    """A pod.

    Attributes:
        number: In order of arrival.
        arrives: Seconds after the beginning.
        lasts: Seconds that it runs.
        containers: What each of its containers asks for.
    """

    number: int
    arrives: float
    lasts: float
    containers: tuple[ContainerRow, ...]

    @property
    def cpu(self) -> int:
        """Thousandths of a CPU that all containers request."""
        return sum(one.request or 0 for one in self.containers)

    @property
    def memory(self) -> int:
        """Bytes that all containers request."""
        return sum(one.memory or 0 for one in self.containers)

    @property
    def is_guaranteed(self) -> bool:
        """Whether the scheduler plugin checks its CPUs and memory."""
        return all(one.qos is QosClass.GUARANTEED for one in self.containers)

    @property
    def is_exclusive(self) -> bool:
        """Whether it asks for CPUs of its own."""
        rows = self.containers
        return self.is_guaranteed and not any(
            (one.request or 0) % ONE_CPU for one in rows
        )


def lives(seed: int, requested: float, hours: float = HOURS) -> Iterator[PodLife]:
    """Yield pods in order of arrival.

    Args:
        seed: Equal seeds give equal lives.
        requested: Thousandths of a CPU that all present ones request, on average.
        hours: How long pods arrive.
    """
    random = Random(seed)  # noqa: S311 - repeatable
    mean = sum(_pod(random, number, 0.0).cpu for number in range(2000)) / 2000
    pause = _LIFE / (requested / mean)
    at, number = 0.0, 0
    while (at := at + random.expovariate(1 / pause)) < 3600.0 * hours:
        yield _pod(random, number, at)
        number += 1


def _pod(random: Random, number: int, at: float) -> PodLife:
    kind = random.random()
    if kind < 0.5:
        counts = random.sample(_EXCLUSIVE, 2 if random.random() < 0.2 else 1)
        rows = tuple(_row(QosClass.GUARANTEED, ONE_CPU * one) for one in counts)
    elif kind < 0.6:
        rows = (_row(QosClass.GUARANTEED, random.choice(_SHARED)),)
    elif kind < 0.9:
        rows = (_row(QosClass.BURSTABLE, random.choice(_SHARED)),)
    else:
        rows = (ContainerRow(qos=QosClass.BEST_EFFORT, request=MilliCpus(0)),)
    return PodLife(number, at, random.expovariate(1 / _LIFE), rows)


def _row(qos: QosClass, request: int) -> ContainerRow:
    return ContainerRow(qos=qos, request=MilliCpus(request), memory=_MEMORY)
