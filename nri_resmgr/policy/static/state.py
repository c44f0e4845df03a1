"""Who holds which CPUs: the state that the static policy's decisions replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from nri_resmgr.policy.events import ContainerSpec, Pin, Synchronized
from nri_resmgr.policy.ledger import Ledger, gone_since, of_pods_there
from nri_resmgr.values import NO_CPUS, CpuSet

Grants: TypeAlias = Mapping[str, Pin]
Places: TypeAlias = Mapping[tuple[str, str], CpuSet]


class StaticState(msgspec.Struct, frozen=True):
    """Containers, grants, and places that were given up.

    Attributes:
        ledger: All containers.
        grants: The CPUs that a container has to itself, with their memory, by
            container id. Who is not in here shares.
        vacated: Where the last container of a pod's slot was, by pod and slot.
    """

    ledger: Ledger
    grants: Grants
    vacated: Places

    @classmethod
    def empty(cls) -> StaticState:
        """Return the state of a node without containers."""
        return cls(Ledger.of(), {}, {})

    @property
    def taken(self) -> CpuSet:
        """CPUs that are granted to somebody."""
        return CpuSet.union(grant.cpus for grant in self.grants.values())

    def held_by(self, container: str) -> CpuSet:
        """Return the CPUs that a container has to itself."""
        grant = self.grants.get(container)
        return grant.cpus if grant else NO_CPUS

    def put(self, spec: ContainerSpec, grant: Pin, told: Pin) -> StaticState:
        """Place a container, new or known; an empty grant lets it share."""
        grants = {key: one for key, one in self.grants.items() if key != spec.id}
        if grant.cpus:
            grants[spec.id] = grant
        return msgspec.structs.replace(
            self, ledger=self.ledger.put(spec, told), grants=grants
        )

    def release(self, *containers: str) -> StaticState:
        """Forget containers that are here; their places stay on offer in their pods."""
        vacated = dict(self.vacated)
        for container in containers:
            spec = self.ledger.spec_of(container)
            if spec.slot and container in self.grants:
                vacated[spec.pod, spec.slot] = self.held_by(container)
        return StaticState(
            ledger=self.ledger.drop(*containers),
            grants={k: one for k, one in self.grants.items() if k not in containers},
            vacated=vacated,
        )

    def lose(self, *containers: str) -> StaticState:
        """Release containers that are gone without having stopped.

        Their creation must have failed after it was answered, and with it the
        updates in that answer may be lost: nothing told before can be trusted.
        """
        if not containers:
            return self
        left = self.release(*containers)
        return msgspec.structs.replace(left, ledger=left.ledger.forget_last_sent())

    def vacated_since(self, event: Synchronized) -> Places:
        """Return the places to come back to, when it is told anew who runs."""
        gone = {
            (spec.pod, spec.slot): self.held_by(spec.id)
            for spec in gone_since(self.ledger, event)
            if spec.id in self.grants
        }
        return of_pods_there({**self.vacated, **gone}, event)

    def close(self, pod: str) -> StaticState:
        """Forget what a pod's containers left behind."""
        return msgspec.structs.replace(
            self, vacated={k: v for k, v in self.vacated.items() if k[0] != pod}
        )
