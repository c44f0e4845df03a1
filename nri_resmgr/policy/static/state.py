"""The state of the static policy: containers and their exclusive CPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Pin, Synchronized
from nri_resmgr.policy.ledger import Ledger, gone_since, of_pods_there
from nri_resmgr.values import NO_CPUS, CpuSet

Grants: TypeAlias = Mapping[str, Pin]
FormerPlaces: TypeAlias = Mapping[tuple[str, str], CpuSet]


class StaticState(msgspec.Struct, frozen=True):
    """All containers, their grants, and the former places of stopped containers.

    Attributes:
        ledger: All containers.
        grants: Exclusive CPUs with their memory nodes, by container id; containers
            without a grant share.
        former_places: CPUs of the last container of a pod's slot, by pod and slot.
    """

    ledger: Ledger
    grants: Grants
    former_places: FormerPlaces

    @classmethod
    def empty(cls) -> StaticState:
        """Return the state of a node without containers."""
        return cls(Ledger.of(), {}, {})

    @property
    def taken(self) -> CpuSet:
        """All granted CPUs."""
        return CpuSet.union(grant.cpus for grant in self.grants.values())

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

    def release(self, *containers: str) -> StaticState:
        """Remove containers; their CPUs are kept for restarts in the same pods."""
        former_places = dict(self.former_places)
        for container in containers:
            spec = self.ledger.spec_of(container)
            if spec.slot and container in self.grants:
                former_places[spec.pod, spec.slot] = self.held_by(container)
        return StaticState(
            ledger=self.ledger.drop(*containers),
            grants={k: one for k, one in self.grants.items() if k not in containers},
            former_places=former_places,
        )

    def lose(self, *containers: str) -> StaticState:
        """Remove containers that are gone without having stopped.

        Their creation failed after it was answered, so the runtime may have discarded
        the updates in that answer: all pins have to be sent again.
        """
        if not containers:
            return self
        left = self.release(*containers)
        return replace(left, ledger=left.ledger.forget_last_sent())

    def former_places_since(self, event: Synchronized) -> FormerPlaces:
        """Return the former places that a synchronization leaves."""
        gone = {
            (spec.pod, spec.slot): self.held_by(spec.id)
            for spec in gone_since(self.ledger, event)
            if spec.id in self.grants
        }
        return of_pods_there({**self.former_places, **gone}, event)

    def close(self, pod: str) -> StaticState:
        """Discard the former places of a pod's containers."""
        return replace(
            self,
            former_places={k: v for k, v in self.former_places.items() if k[0] != pod},
        )
