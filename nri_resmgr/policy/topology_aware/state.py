"""The state of the topology-aware policy: an immutable value that decisions replace."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.claims import NO_CLAIMS, PreparedClaim
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import KnowsContainers, Ledger, of_other_pods
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, PoolLedger
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.whole_pods import NOTHING_ANNOUNCED, Announced


class NodeView(msgspec.Struct, frozen=True):
    """The state of the node as one decision sees it: without the container to place."""

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


class TopologyAwareState(KnowsContainers, frozen=True):
    """Containers with their grants, and places kept for future containers.

    Attributes:
        grants: CPUs by container id, and those of reserved places by `place_id`.
        pool_ledger: The sums of the grants.
        memory: Memory by the same ids.
        former_places: CPUs of the last container of each pod's slot, for its
            successor.
        reserved_places: The expected containers that places are reserved for, by pod
            and name; their ids are those of the grants.
        claims: Prepared claims by UID; their CPUs are in `pool_ledger`.
        announced: The containers of pods that were placed as a whole.
        unsettled: Whether pins changed in a reply that cannot carry updates, so that
            the next decision has to compare all of them.
    """

    grants: MappingProxyType[str, Grant]
    pool_ledger: PoolLedger
    memory: MemoryLedger
    former_places: MappingProxyType[Slot, Grant] = _NO_PLACES
    reserved_places: Mapping[Slot, ContainerSpec] = _NO_SPECS
    claims: Mapping[str, PreparedClaim] = NO_CLAIMS
    announced: Announced = NOTHING_ANNOUNCED
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

    def put(
        self,
        spec: ContainerSpec,
        grant: Grant,
        memory: MemoryLedger,
        sent: Pin,
        pool_ledger: PoolLedger | None = None,
    ) -> TopologyAwareState:
        """Place a container that has no grant.

        *memory* and *pool_ledger* include it; the latter is computed if omitted. *sent*
        is the pin that the runtime knows.
        """
        grants = self.grants.copy()
        grants[spec.id] = grant
        return replace(
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
        return replace(
            self,
            grants=MappingProxyType(grants),
            pool_ledger=pool_ledger,
            memory=self.memory.release(*ids),
        )

    def regrant(self, *changed: Grant) -> TopologyAwareState:
        """Replace the grants of containers; their memory stays."""
        grants, pool_ledger = self.grants.copy(), self.pool_ledger
        for grant in changed:
            pool_ledger = pool_ledger.remove(grants[grant.container]).add(grant)
            grants[grant.container] = grant
        return replace(self, grants=MappingProxyType(grants), pool_ledger=pool_ledger)

    def release(self, container: str) -> TopologyAwareState:
        """Drop a known container; its slot remembers its place."""
        former_places, spec = self.former_places.copy(), self.ledger.spec_of(container)
        if spec.slot:
            former_places[spec.pod, spec.slot] = self.grants[container]
        return replace(
            self.take_back(container),
            ledger=self.ledger.drop(container),
            former_places=MappingProxyType(former_places),
        )

    def reserve_place(
        self, spec: ContainerSpec, grant: Grant, memory: MemoryLedger
    ) -> TopologyAwareState:
        """Reserve a place for an expected container, under the id of the place."""
        slot = (spec.pod, spec.name)
        return replace(
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
        left, places = self.take_back(*gone), MappingProxyType(kept)
        return replace(left, reserved_places=places, unsettled=True)

    def put_claim(self, prepared: PreparedClaim) -> TopologyAwareState:
        """Give a claim its CPUs."""
        claims = {**self.claims, prepared.claim.uid: prepared}
        ledger = self.pool_ledger.add(grant_of_claim(prepared, self.pool_ledger.tree))
        return replace(self, claims=claims, pool_ledger=ledger)

    def drop_claim(self, uid: str) -> TopologyAwareState:
        """Take the CPUs of a claim back."""
        claims = {key: one for key, one in self.claims.items() if key != uid}
        gone = grant_of_claim(self.claims[uid], self.pool_ledger.tree)
        return replace(self, claims=claims, pool_ledger=self.pool_ledger.remove(gone))

    def close(self, pod: str) -> TopologyAwareState:
        """Drop what is kept for a pod: former and reserved places, announced names."""
        mine = (slot for slot in self.reserved_places if slot[0] == pod)
        left = self.release_places(*mine)
        former_places = MappingProxyType(of_other_pods(left.former_places, pod))
        others = {key: names for key, names in left.announced.items() if key != pod}
        return replace(left, former_places=former_places, announced=others)

    def alone(self, pod: str, container: str = "") -> TopologyAwareState:
        """Return the state as if all had stopped but a container, which may be new.

        Of what is reserved only the places of its pod are left.
        """
        gone = [key for key in self.ledger.entries if key != container]
        others = (slot for slot in self.reserved_places if slot[0] != pod)
        left = self.release_places(*others)
        for uid in self.claims:
            left = left.drop_claim(uid)
        grants = left.grants.copy()
        for key in gone:
            grants.pop(key, None)
        # Counted anew: on a full node, what stays is far less than what goes.
        return replace(
            left,
            ledger=left.ledger.drop(*gone),
            grants=MappingProxyType(grants),
            pool_ledger=PoolLedger.of(left.pool_ledger.tree, grants.values()),
            memory=left.memory.release(*gone),
        )


def place_id(slot: Slot) -> str:
    """Return the id of a reserved place, which its grants have."""
    return f"{slot[0]}/{slot[1]}"


def grant_of_claim(prepared: PreparedClaim, tree: PoolTree) -> Grant:
    """Return the grant that takes the CPUs of a claim, from the smallest pool."""
    cpus = prepared.cpus
    pool = tree.smallest_with(cpus)
    return Grant(claim_id(prepared.claim.uid), CpuKind.EXCLUSIVE, pool.id, cpus)


def claim_id(uid: str) -> str:
    """Return the id of a claim in grants and reasons, which no container has."""
    return f"claim:{uid}"
