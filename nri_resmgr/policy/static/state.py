"""The state of the static policy: containers and their exclusive CPUs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Pin, Synchronized
from nri_resmgr.policy.ledger import (
    KnowsContainers,
    Ledger,
    former_places_since,
    of_other_pods,
    of_pods_there,
)
from nri_resmgr.policy.whole_pods import (
    NOTHING_ANNOUNCED,
    Announced,
    announced_since,
)
from nri_resmgr.values import NO_CPUS, CpuSet, StoredValue

Slot: TypeAlias = tuple[str, str]
"""A pod's id and a name in it."""

Grants: TypeAlias = Mapping[str, Pin]
FormerPlaces: TypeAlias = Mapping[Slot, CpuSet]


class ReservedPlace(StoredValue, frozen=True):
    """Exclusive CPUs for a container of a pod, until it is created."""

    spec: ContainerSpec
    cpus: CpuSet


_NO_PLACES: Final[Mapping[Slot, ReservedPlace]] = MappingProxyType({})


class StaticState(KnowsContainers, frozen=True):
    """All containers, their grants, and places kept for future containers.

    Attributes:
        grants: Exclusive CPUs with their memory nodes, by container id; containers
            without a grant share.
        former_places: CPUs of the last container of a pod's slot.
        reserved_places: CPUs of containers that are expected, by pod and name.
        announced: The containers of pods that were placed as a whole.
    """

    grants: Grants
    former_places: FormerPlaces
    reserved_places: Mapping[Slot, ReservedPlace] = _NO_PLACES
    announced: Announced = NOTHING_ANNOUNCED

    @classmethod
    def empty(cls) -> StaticState:
        """Return the state of a node without containers."""
        return cls(Ledger.of(), {}, {})

    @property
    def taken(self) -> CpuSet:
        """All CPUs that are granted or reserved."""
        holders = (self.grants, self.reserved_places)
        return CpuSet.union(one.cpus for each in holders for one in each.values())

    def held_by(self, container: str) -> CpuSet:
        """Return the exclusive CPUs of a container."""
        grant = self.grants.get(container)
        return grant.cpus if grant else NO_CPUS

    def put(self, spec: ContainerSpec, grant: Pin, last_sent: Pin) -> StaticState:
        """Replace or add a container and its grant; with an empty grant it shares."""
        grants = {key: one for key, one in self.grants.items() if key != spec.id}
        if grant.cpus:
            grants[spec.id] = grant
        return replace(self, ledger=self.ledger.put(spec, last_sent), grants=grants)

    def reserve(
        self, places: Mapping[Slot, ReservedPlace], pod: str, names: tuple[str, ...]
    ) -> StaticState:
        """Reserve the places of a pod, which announced containers of these *names*."""
        return replace(
            self,
            reserved_places={**self.reserved_places, **places},
            announced={**self.announced, pod: names},
        )

    def without_place(self, slot: Slot) -> StaticState:
        """Drop the reserved place of a slot, if there is one."""
        if slot not in self.reserved_places:
            return self
        left = {key: one for key, one in self.reserved_places.items() if key != slot}
        return replace(self, reserved_places=left)

    def close(self, pod: str) -> StaticState:
        """Drop what is kept for a pod: former and reserved places, announced names."""
        others = {key: names for key, names in self.announced.items() if key != pod}
        return replace(
            self,
            former_places=of_other_pods(self.former_places, pod),
            reserved_places=of_other_pods(self.reserved_places, pod),
            announced=others,
        )

    def places_since(self, event: Synchronized, taken: CpuSet) -> StaticState:
        """Return the state with the reserved places that a synchronization leaves.

        Args:
            event: Has the running containers.
            taken: CPUs that they have, or that may not be granted any more.
        """
        named = {(spec.pod, spec.name) for spec in event.specs}
        places = of_pods_there(self.reserved_places, event)
        kept = {
            slot: one
            for slot, one in places.items()
            if slot not in named and not one.cpus & taken
        }
        return replace(
            self, reserved_places=kept, announced=announced_since(self.announced, event)
        )

    def former_places_since(self, event: Synchronized) -> FormerPlaces:
        """Return the former places that a synchronization leaves."""
        return former_places_since(
            self.former_places,
            self.ledger,
            event,
            lambda key: self.held_by(key) if key in self.grants else None,
        )
