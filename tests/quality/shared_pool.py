"""A node where containers without CPUs of their own share all the rest."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet
from tests.quality.life import RESERVED, Arrival
from tests.quality.node import Place


class SharedPoolNode:
    """The base of models, which choose exclusive CPUs.

    Attributes:
        machine: The node's. Its lowest CPUs are reserved, and always shared.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._reserved = CpuSet.from_iterable(sorted(machine.online)[:RESERVED])
        self._own: dict[int, CpuSet] = {}
        self._sharing: set[int] = set()

    def create(self, one: Arrival) -> bool:
        """See `Placer.create`."""
        if not one.exclusive:
            self._sharing.add(one.number)
            return True
        free = self._shared() - self._reserved
        if len(free) < one.exclusive:
            return False
        if chosen := self.choose(free, one.exclusive):
            self._own[one.number] = chosen
        return bool(chosen)

    def stop(self, one: Arrival) -> None:
        """See `Placer.stop`."""
        self._own.pop(one.number, None)
        self._sharing.discard(one.number)

    def places(self) -> Mapping[int, Place]:
        """See `Placer.places`."""
        shared = Place(self._shared(), NO_CPUS)
        own = {
            number: Place(cpus, cpus, self.mems_of(cpus))
            for number, cpus in self._own.items()
        }
        return own | dict.fromkeys(self._sharing, shared)

    def choose(self, free: CpuSet, count: int) -> CpuSet:
        """Choose so many of at least as many free CPUs; none to refuse."""
        raise NotImplementedError

    def mems_of(self, cpus: CpuSet) -> NodeSet:  # noqa: ARG002 - for overriding methods
        """Return the memory nodes of a container; none for any."""
        return NO_NODES

    def _shared(self) -> CpuSet:
        return self.machine.online - CpuSet.union(self._own.values())
