"""The state of the topology-aware policy: an immutable value that decisions replace."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, PoolLedger
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings


class NodeView(msgspec.Struct, frozen=True):
    """The node without the container that is being placed.

    Attributes:
        tree: The pools.
        settings: The policy's settings.
        ledger: All containers.
        grants: CPUs by container id.
        pool_ledger: The sums of the grants.
        memory: Memory by container id.
    """

    tree: PoolTree
    settings: TopologyAwareSettings
    ledger: Ledger
    grants: Mapping[str, Grant]
    pool_ledger: PoolLedger
    memory: MemoryLedger


Slot: TypeAlias = tuple[str, str]
"""A pod's id and a name in it."""

_NO_PLACES: Final[MappingProxyType[Slot, Grant]] = MappingProxyType({})
_NO_SPECS: Final[Mapping[Slot, ContainerSpec]] = MappingProxyType({})


class TopologyAwareState(msgspec.Struct, frozen=True):
    """Containers with their grants, and places kept for future containers.

    Attributes:
        ledger: All containers.
        grants: CPUs by container id, and those of reserved places by `place_id`.
        pool_ledger: The sums of the grants.
        memory: Memory by the same ids.
        former_places: CPUs of the last container of each pod's slot, for its
            successor.
        reserved_places: The expected containers that places are reserved for, by pod
            and name; their ids are those of the grants.
        unsettled: Whether pins changed in a reply that cannot carry updates, so that
            the next decision has to compare all of them.
    """

    ledger: Ledger
    grants: MappingProxyType[str, Grant]
    pool_ledger: PoolLedger
    memory: MemoryLedger
    former_places: MappingProxyType[Slot, Grant] = _NO_PLACES
    reserved_places: Mapping[Slot, ContainerSpec] = _NO_SPECS
    unsettled: bool = False

    @classmethod
    def empty(cls, tree: PoolTree) -> TopologyAwareState:
        """Return the state of a node without containers."""
        return cls(
            ledger=Ledger.of(),
            grants=MappingProxyType({}),
            pool_ledger=PoolLedger.of(tree),
            memory=MemoryLedger.counted(tree.memory),
        )

    def view(self, settings: TopologyAwareSettings) -> NodeView:
        """Return what placing a container needs to know."""
        return NodeView(
            self.pool_ledger.tree,
            settings,
            self.ledger,
            self.grants,
            self.pool_ledger,
            self.memory,
        )

    def with_ledger(self, ledger: Ledger) -> TopologyAwareState:
        """Replace the ledger by one in which all desired pins are recorded as sent."""
        return msgspec.structs.replace(self, ledger=ledger, unsettled=False)

    def put(
        self,
        spec: ContainerSpec,
        grant: Grant,
        memory: MemoryLedger,
        sent: Pin,
        pool_ledger: PoolLedger | None = None,
    ) -> TopologyAwareState:
        """Place a container that has no grant.

        Args:
            spec: The container.
            grant: Its CPUs.
            memory: The memory of all containers, this one included.
            sent: The pin that the runtime knows.
            pool_ledger: The sums with the grant included; computed if omitted.
        """
        grants = self.grants.copy()
        grants[spec.id] = grant
        return msgspec.structs.replace(
            self,
            ledger=self.ledger.put(spec, sent),
            grants=MappingProxyType(grants),
            pool_ledger=pool_ledger or self.pool_ledger.add(grant),
            memory=memory,
        )

    def take_back(self, *ids: str) -> TopologyAwareState:
        """Free the CPUs and memory of containers or reserved places."""
        grants, pool_ledger = self.grants.copy(), self.pool_ledger
        for key in ids:
            if grant := grants.pop(key, None):
                pool_ledger = pool_ledger.remove(grant)
        return msgspec.structs.replace(
            self,
            grants=MappingProxyType(grants),
            pool_ledger=pool_ledger,
            memory=self.memory.release(*ids),
        )

    def release(self, *containers: str) -> TopologyAwareState:
        """Drop known containers; their slots remember their places."""
        former_places = self.former_places.copy()
        for container in containers:
            spec = self.ledger.spec_of(container)
            if spec.slot:
                former_places[spec.pod, spec.slot] = self.grants[container]
        return msgspec.structs.replace(
            self.take_back(*containers),
            ledger=self.ledger.drop(*containers),
            former_places=MappingProxyType(former_places),
        )

    def lose(self, *containers: str) -> TopologyAwareState:
        """Release containers that are gone without having stopped.

        Their creation must have failed after the reply, and the updates in that
        reply may be lost with it. So all pins have to be sent again.
        """
        if not containers:
            return self
        left = self.release(*containers)
        return msgspec.structs.replace(
            left, ledger=left.ledger.forget_last_sent(), unsettled=True
        )

    def reserve_place(
        self, spec: ContainerSpec, grant: Grant, memory: MemoryLedger
    ) -> TopologyAwareState:
        """Reserve a place for an expected container, under the id of the place."""
        slot = (spec.pod, spec.name)
        return msgspec.structs.replace(
            self,
            grants=MappingProxyType(self.grants | {grant.container: grant}),
            pool_ledger=self.pool_ledger.add(grant),
            memory=memory,
            reserved_places=MappingProxyType({**self.reserved_places, slot: spec}),
            unsettled=True,
        )

    def release_places(self, *slots: Slot) -> TopologyAwareState:
        """Drop reserved places; slots without one are ignored."""
        reserved = self.reserved_places
        gone = [reserved[slot].id for slot in slots if slot in reserved]
        if not gone:
            return self
        kept = {slot: one for slot, one in reserved.items() if slot not in slots}
        return msgspec.structs.replace(
            self.take_back(*gone),
            reserved_places=MappingProxyType(kept),
            unsettled=True,
        )

    def close(self, pod: str) -> TopologyAwareState:
        """Drop the former and reserved places of a pod's containers."""
        left = self.release_places(
            *(slot for slot in self.reserved_places if slot[0] == pod)
        )
        former_places = {
            slot: one for slot, one in left.former_places.items() if slot[0] != pod
        }
        return msgspec.structs.replace(
            left, former_places=MappingProxyType(former_places)
        )


def place_id(slot: Slot) -> str:
    """Return the id of a reserved place, which its grants have."""
    return f"{slot[0]}/{slot[1]}"
