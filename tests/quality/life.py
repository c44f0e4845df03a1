"""The life of one node: containers that come and go, by a seed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

import msgspec

from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.topology import Machine
from nri_resmgr.values import ONE_CPU, Bytes, MilliCpus, QosClass

HOURS: Final = 3.0
"""Length of a life."""

_LIFE: Final = 600.0  # seconds of a container, the mean of an exponential distribution

# Few large ones and many small ones, as people ask for. Those that are larger than the
# CPUs of a NUMA node are left out.
_EXCLUSIVE: Final = (1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16, 24, 32)
_SHARED: Final = (100, 250, 300, 500, 750, 1200, 1500, 2500)

# Of the memory that a CPU has on average: CPUs are to be short, not memory.
_MEMORY: Final = (0.3, 0.9)

# What the kubelet keeps for the system, of CPUs and memory; the policies reserve the
# same CPU.
RESERVED: Final = 1
_SYSTEM_MEMORY: Final = 1 << 30


class Arrival(msgspec.Struct, frozen=True):
    """A container, alone in its pod.

    Attributes:
        at: Seconds after the beginning.
        lasts: Seconds that it runs.
    """

    number: int
    at: float
    lasts: float
    row: ContainerRow

    @property
    def cpu(self) -> int:
        """The thousandths of a CPU that it requests."""
        return self.row.request or 0

    @property
    def memory(self) -> int:
        """The bytes that it requests."""
        return self.row.memory or 0

    @property
    def exclusive(self) -> int:
        """The CPUs of its own that it asks for: those of a Guaranteed container."""
        if self.row.qos is not QosClass.GUARANTEED or self.cpu % ONE_CPU:
            return 0
        return self.cpu // ONE_CPU


def arrivals(
    machine: Machine, seed: int, load: float, hours: float = HOURS
) -> Iterator[Arrival]:
    """Yield containers in the order of their arrival.

    Args:
        machine: The node's.
        seed: Equal seeds give equal lives.
        load: What containers would request on average if all ran, as a part of the
            allocatable CPUs.
        hours: How long they come.
    """
    random, made = Random(seed), _Mix(machine)  # noqa: S311 - repeatable
    mean = sum(made.row(random).request or 0 for _ in range(4000)) / 4000
    requested = load * ONE_CPU * (len(machine.online) - RESERVED)
    pause = _LIFE / (requested / mean)
    at, number = 0.0, 0
    while (at := at + random.expovariate(1 / pause)) < 3600.0 * hours:
        yield Arrival(number, at, random.expovariate(1 / _LIFE), made.row(random))
        number += 1


class _Mix:
    """Draws containers that a machine can take."""

    def __init__(self, machine: Machine) -> None:
        largest = max(map(len, machine.node_cpus)) - RESERVED
        self._sizes = [one for one in _EXCLUSIVE if one <= largest]
        total = sum(node.memory for node in machine.nodes)
        self._memory_of_cpu = total / len(machine.online)

    def row(self, random: Random) -> ContainerRow:
        kind = random.random()
        if kind < 0.45:
            cpu = ONE_CPU * random.choice(self._sizes)
            return self._row(random, QosClass.GUARANTEED, cpu)
        if kind < 0.55:
            return self._row(random, QosClass.GUARANTEED, random.choice(_SHARED))
        if kind < 0.9:
            return self._row(random, QosClass.BURSTABLE, random.choice(_SHARED))
        return ContainerRow(qos=QosClass.BEST_EFFORT, request=MilliCpus(0))

    def _row(self, random: Random, qos: QosClass, cpu: int) -> ContainerRow:
        memory = self._memory_of_cpu * cpu / ONE_CPU * random.uniform(*_MEMORY)
        return ContainerRow(qos=qos, request=MilliCpus(cpu), memory=Bytes(int(memory)))


class Scheduler:
    """Sends containers to the node if the sums of requests fit, as Kubernetes does."""

    def __init__(self, machine: Machine) -> None:
        self._cpu = ONE_CPU * (len(machine.online) - RESERVED)
        self._memory = sum(node.memory for node in machine.nodes) - _SYSTEM_MEMORY

    def fits(self, one: Arrival, running: Sequence[Arrival]) -> bool:
        """Return whether a container fits beside those that run."""
        cpu = one.cpu + sum(other.cpu for other in running)
        memory = one.memory + sum(other.memory for other in running)
        return cpu <= self._cpu and memory <= self._memory


def live(
    machine: Machine,
    coming: Iterator[Arrival],
    create: Callable[[Arrival], bool],
    stop: Callable[[Arrival], None],
) -> None:
    """Have containers created and stopped in the order of time.

    One that does not fit, or is refused, never comes back.
    """
    scheduler, running = Scheduler(machine), dict[int, Arrival]()
    ends: list[tuple[float, int]] = []
    for one in coming:
        while ends and ends[0][0] <= one.at:
            _, number = heapq.heappop(ends)
            stop(running.pop(number))
        if scheduler.fits(one, tuple(running.values())) and create(one):
            running[one.number] = one
            heapq.heappush(ends, (one.at + one.lasts, one.number))
