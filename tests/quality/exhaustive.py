"""Each container on the best of all sets of CPUs, found by trying all of them.

A bound for what a policy can do that moves no exclusive CPUs and knows nothing of what
will come. For small machines only: of 15 free CPUs there are 6,435 sets of 7.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.quality.life import RESERVED, Arrival
from tests.quality.node import Place

MOST_CPUS: Final = 16
"""Of machines that it is for."""


class ExhaustiveNode:
    """A node whose exclusive CPUs are the best ones for each container in its turn."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._reserved = CpuSet.from_iterable(sorted(machine.online)[:RESERVED])
        self._own: dict[int, CpuSet] = {}
        self._sharing: set[int] = set()

    def create(self, one: Arrival) -> bool:
        """See `Placer.create`."""
        if not one.exclusive:
            self._sharing.add(one.number)
            return True
        free = self._rest() - self._reserved
        if len(free) < one.exclusive:
            return False
        sets = map(
            CpuSet.from_iterable, itertools.combinations(sorted(free), one.exclusive)
        )
        self._own[one.number] = min(sets, key=self._cost)
        return True

    def stop(self, one: Arrival) -> None:
        """See `Placer.stop`."""
        self._own.pop(one.number, None)
        self._sharing.discard(one.number)

    def places(self) -> Mapping[int, Place]:
        """See `Placer.places`."""
        shared = self._rest()
        own = {
            number: Place(cpus, cpus, self._machine.nodes_of(cpus))
            for number, cpus in self._own.items()
        }
        return own | dict.fromkeys(self._sharing, Place(shared, NO_CPUS))

    def _rest(self) -> CpuSet:
        return self._machine.online - CpuSet.union(self._own.values())

    def _cost(self, cpus: CpuSet) -> tuple[int, ...]:
        """Return nodes, cores that others use, and cores; then what is left whole."""
        nodes = sum(1 for node in self._machine.node_cpus if node & cpus)
        cores = [one.cpus for one in self._machine.cores if one.cpus & cpus]
        split = sum(1 for core in cores if core - cpus)
        left = self._rest() - cpus
        room = [len(node & left) for node in self._machine.node_cpus]
        return nodes, split, len(cores), -max(room), *sorted(cpus)
