"""Looks at where the containers of a node are, at each arrival.

Arrivals are a Poisson process: what they see on average is the average over time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from nri_resmgr.topology import Core, Machine
from nri_resmgr.values import ONE_CPU, CpuSet
from tests.quality.life import RESERVED, Arrival
from tests.quality.node import Place, Placer


@attrs.define
class Measured:
    """What was seen in a life; shares are those of the names before them.

    Attributes:
        sent: Containers that the scheduler sent to the node.
        refused: Of these.
        exclusive: Containers with CPUs of their own that fit into one NUMA node.
        in_one_node: Of these.
        cores: Physical cores with CPUs of one container, summed over all arrivals.
        cores_shared: Of these, those that another container may use as well.
        granted: Containers that got CPUs of their own.
        cores_above: Cores that these have beyond the fewest possible.
        asked: Shared CPU time that was asked for, summed over all arrivals.
        short: Of this, what the shared CPUs do not have.
        placed: Containers with a place, summed over all arrivals.
        near: Of these, those whose memory is confined to the nodes of their CPUs.
        events: Arrivals and ends.
        moved: Containers that lost CPUs of their own while they ran.
        updates: Running containers whose CPUs or memory nodes changed.
    """

    sent: int = 0
    refused: int = 0
    exclusive: int = 0
    in_one_node: int = 0
    cores: int = 0
    cores_shared: int = 0
    granted: int = 0
    cores_above: int = 0
    asked: int = 0
    short: int = 0
    placed: int = 0
    near: int = 0
    events: int = 0
    moved: int = 0
    updates: int = 0


class Watched:
    """Has containers placed, and measures their places.

    Attributes:
        measured: So far.
    """

    def __init__(self, machine: Machine, node: Placer) -> None:
        self._machine, self._node = machine, node
        self._largest = max(map(len, machine.node_cpus)) - RESERVED
        self._running: dict[int, Arrival] = {}
        self._before: Mapping[int, Place] = {}
        self.measured = Measured()

    def create(self, one: Arrival) -> bool:
        """Have a container created; return False if it is refused."""
        self.measured.sent += 1
        is_placed = self._node.create(one)
        if is_placed:
            self._running[one.number] = one
        else:
            self.measured.refused += 1
        self._follow()
        if place := self._before.get(one.number):
            self._measure_new(one, place)
        self._measure_all()
        return is_placed

    def stop(self, one: Arrival) -> None:
        """Have a container stopped."""
        del self._running[one.number]
        self._node.stop(one)
        self._follow()

    def _follow(self) -> None:
        before, after = self._before, self._node.places()
        stayed = [(before[key], after[key]) for key in after if key in before]
        self.measured.events += 1
        self.measured.updates += sum(
            (old.cpus, old.mems) != (new.cpus, new.mems) for old, new in stayed
        )
        self.measured.moved += sum(bool(old.own - new.own) for old, new in stayed)
        self._before = after

    def _measure_new(self, one: Arrival, place: Place) -> None:
        if not one.exclusive or not place.own:
            return
        found, threads = self.measured, max(len(core.cpus) for core in self._cores())
        found.granted += 1
        fewest = -(-len(place.own) // threads)
        found.cores_above += sum(1 for _ in self._cores(place.own)) - fewest
        if one.exclusive <= self._largest:
            found.exclusive += 1
            found.in_one_node += len(self._machine.nodes_of(place.own)) == 1

    def _measure_all(self) -> None:
        found, places = self.measured, self._before
        used = Counter(cpu for one in places.values() for cpu in one.cpus)
        for number, place in places.items():
            found.placed += 1
            nodes = self._machine.nodes_of(place.cpus)
            found.near += bool(place.mems) and place.mems <= nodes
            if not self._running[number].exclusive:
                continue
            for core in self._cores(place.own):
                found.cores += 1
                found.cores_shared += any(used[cpu] for cpu in core.cpus - place.own)
        asked = list(self._shared_demands())
        found.asked += sum(amount for _, amount in asked)
        found.short += short_of(asked)

    def _shared_demands(self) -> Iterator[tuple[CpuSet, int]]:
        for number, place in self._before.items():
            if amount := self._running[number].cpu - ONE_CPU * len(place.own):
                yield place.cpus - place.own, max(amount, 0)

    def _cores(self, cpus: CpuSet | None = None) -> Iterator[Core]:
        for core in self._machine.cores:
            if cpus is None or core.cpus & cpus:
                yield core


def short_of(demands: Iterable[tuple[CpuSet, int]]) -> int:
    """Return the thousandths of a CPU that some sets of CPUs lack for what is asked.

    Small sets are filled first, which is exact if of any two sets one holds the other
    or they are apart, as pools are.
    """
    sums = Counter[CpuSet]()
    for cpus, amount in demands:
        sums[cpus] += amount
    left = {cpu: ONE_CPU for cpus in sums for cpu in cpus}
    short = 0
    for cpus, amount in sorted(sums.items(), key=lambda one: len(one[0])):
        rest = amount
        for cpu in cpus:
            part = min(rest, left[cpu])
            left[cpu] -= part
            rest -= part
        short += rest
    return short
