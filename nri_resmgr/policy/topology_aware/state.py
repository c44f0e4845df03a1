"""Who has what: the state that the topology-aware policy's decisions replace."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.topology_aware.pool_ledger import Books, Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings


class Room(msgspec.Struct, frozen=True):
    """The node without the container that is being placed.

    Attributes:
        tree: The pools.
        settings: What the policy is told to do.
        ledger: All containers.
        grants: What they have of the CPUs, by container id.
        books: The sums of the grants.
        memory: What they have of the memory.
    """

    tree: PoolTree
    settings: TopologyAwareSettings
    ledger: Ledger
    grants: Mapping[str, Grant]
    books: Books
    memory: MemoryLedger


Slot: TypeAlias = tuple[str, str]
"""A pod's id and a name in it."""

_NONE: Final[MappingProxyType[Slot, Grant]] = MappingProxyType({})
_NOBODY: Final[Mapping[Slot, ContainerSpec]] = MappingProxyType({})


class TopologyAwareState(msgspec.Struct, frozen=True):
    """Containers, grants, and places that are kept for containers to come.

    Attributes:
        ledger: All containers.
        grants: What each has of the CPUs, by container id, and what is held for
            containers to come, by the id that `held_id` gives.
        books: The sums of the grants.
        memory: What each has of the memory, by the same ids.
        vacated: Where the last container of a pod's slot was.
        held: The containers that places are held for, by pod and name; their ids
            are those of the grants.
        unsettled: Whether a decision changed pins in a reply that has no room
            for updates, so that all of them have to be looked at.
    """

    ledger: Ledger
    grants: MappingProxyType[str, Grant]
    books: Books
    memory: MemoryLedger
    vacated: MappingProxyType[Slot, Grant] = _NONE
    held: Mapping[Slot, ContainerSpec] = _NOBODY
    unsettled: bool = False

    @classmethod
    def empty(cls, tree: PoolTree) -> TopologyAwareState:
        """Return the state of a node without containers."""
        return cls(
            ledger=Ledger.of(),
            grants=MappingProxyType({}),
            books=Books.of(tree),
            memory=MemoryLedger.counted(tree.memory),
        )

    def room(self, settings: TopologyAwareSettings) -> Room:
        """Return what can be granted besides all that is."""
        return Room(
            self.books.tree,
            settings,
            self.ledger,
            self.grants,
            self.books,
            self.memory,
        )

    def told(self, ledger: Ledger) -> TopologyAwareState:
        """Note what all have been told: from now on only changes are looked for."""
        return TopologyAwareState(
            ledger,
            self.grants,
            self.books,
            self.memory,
            self.vacated,
            self.held,
        )

    def put(
        self,
        spec: ContainerSpec,
        grant: Grant,
        memory: MemoryLedger,
        told: Pin,
        books: Books | None = None,
    ) -> TopologyAwareState:
        """Place a container that has no grant.

        Args:
            spec: The container.
            grant: What it has of the CPUs from now on.
            memory: What all have of the memory from now on.
            told: What the runtime knows of its pinning.
            books: The sums with the grant in them; found where left out.
        """
        grants = self.grants.copy()
        grants[spec.id] = grant
        return TopologyAwareState(
            self.ledger.put(spec, told),
            MappingProxyType(grants),
            self.books.add(grant) if books is None else books,
            memory,
            self.vacated,
            self.held,
            self.unsettled,
        )

    def take_back(self, *ids: str) -> TopologyAwareState:
        """Take CPUs and memory from containers, or from places held."""
        grants, books = self.grants.copy(), self.books
        for key in ids:
            if grant := grants.pop(key, None):
                books = books.remove(grant)
        return TopologyAwareState(
            self.ledger,
            MappingProxyType(grants),
            books,
            self.memory.release(*ids),
            self.vacated,
            self.held,
            self.unsettled,
        )

    def release(self, *containers: str) -> TopologyAwareState:
        """Forget containers that are here; their places stay on offer in their pods."""
        vacated = self.vacated.copy()
        for container in containers:
            spec = self.ledger.spec_of(container)
            if spec.slot:
                vacated[spec.pod, spec.slot] = self.grants[container]
        left = self.take_back(*containers)
        return TopologyAwareState(
            self.ledger.drop(*containers),
            left.grants,
            left.books,
            left.memory,
            MappingProxyType(vacated),
            self.held,
            self.unsettled,
        )

    def lose(self, *containers: str) -> TopologyAwareState:
        """Release containers that are gone without having stopped.

        Their creation must have failed after it was answered, and with it the
        updates in that answer may be lost: nothing told before can be trusted.
        """
        if not containers:
            return self
        left = self.release(*containers)
        return msgspec.structs.replace(
            left, ledger=left.ledger.forget_last_sent(), unsettled=True
        )

    def hold(
        self, spec: ContainerSpec, grant: Grant, memory: MemoryLedger
    ) -> TopologyAwareState:
        """Keep a place for a container that is to come, under the id of the place."""
        slot = (spec.pod, spec.name)
        return msgspec.structs.replace(
            self,
            grants=MappingProxyType(self.grants | {grant.container: grant}),
            books=self.books.add(grant),
            memory=memory,
            held=MappingProxyType({**self.held, slot: spec}),
            unsettled=True,
        )

    def let_go(self, *slots: Slot) -> TopologyAwareState:
        """Keep places no longer; slots without one are fine."""
        gone = [self.held[slot].id for slot in slots if slot in self.held]
        if not gone:
            return self
        held = {slot: one for slot, one in self.held.items() if slot not in slots}
        return msgspec.structs.replace(
            self.take_back(*gone), held=MappingProxyType(held), unsettled=True
        )

    def close(self, pod: str) -> TopologyAwareState:
        """Forget what a pod's containers left behind, and what was held for them."""
        left = self.let_go(*(slot for slot in self.held if slot[0] == pod))
        vacated = {slot: one for slot, one in left.vacated.items() if slot[0] != pod}
        return msgspec.structs.replace(left, vacated=MappingProxyType(vacated))


def held_id(slot: Slot) -> str:
    """Return the id under which a place is counted until its container comes."""
    return f"{slot[0]}/{slot[1]}"
