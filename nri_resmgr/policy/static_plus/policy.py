"""The static-plus policy: pins of mixed grants, and the overflow of shared CPUs."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from nri_resmgr.policy.cpu_pools import with_use
from nri_resmgr.policy.decision import Reason
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, pinning
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.static import StaticPolicy, StaticState
from nri_resmgr.policy.static.place import StaticPlacement
from nri_resmgr.policy.static_plus.settings import StaticPlusSettings
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus


class StaticPlusPolicy(StaticPolicy):
    """Exclusive CPUs for the whole CPUs of a request; its fraction is shared.

    It differs from `StaticPolicy` in what containers ask for, which is in the settings,
    and in how they are pinned: a container with a fraction of a CPU runs on its
    exclusive CPUs and on the shared ones, with the weight of the fraction. Containers
    whose fractions exceed the shared CPUs run on the reserved ones besides.

    Source:
        CRI Resource Manager, the policy ``static-plus``.
    """

    kind: ClassVar[str] = "StaticPlusPolicy"

    def __init__(self, machine: Machine, settings: StaticPlusSettings) -> None:
        super().__init__(machine, settings)
        # Those of a container that may share, whatever it shares at present: with
        # changing nodes the kernel would move its pages.
        self._sharing_mems = self.supply.shared_mems | self.supply.reserved_mems

    def pins(self, state: StaticState) -> dict[str, Pin]:
        """Return the desired pin of every container, by id."""
        shared = self.supply.shared - state.taken
        room = ONE_CPU * len(shared)
        pins: dict[str, Pin] = {}
        for key, entry in state.ledger.entries.items():
            spec, grant = entry.spec, state.grants.get(key, NO_PIN)
            cpus, mems, weight = grant.cpus, grant.mems, ONE_CPU * len(grant.cpus)
            if spec.preferences.preserve_cpus:
                pins[key] = NO_PIN  # and no part of the room
                continue
            if not grant and self.settings.reserves_for(spec):
                cpus, mems = self.supply.reserved, self.supply.reserved_mems
                weight = spec.request
            elif self._shares(spec, grant):
                weight = self._fraction(spec, grant)
                room -= weight
                # In the order in which they came, so that later ones change nothing.
                overflow = self.supply.reserved if room < 0 or not shared else NO_CPUS
                cpus, mems = cpus | shared | overflow, mems | self._sharing_mems
            shares = shares_of(MilliCpus(weight))
            pin = pinning(cpus.bits, mems.bits, shares)
            pins[key] = self._as_allowed(spec, pin)
        return pins

    def pin_of(self, state: StaticState, spec: ContainerSpec) -> Pin:
        """Return the desired pin of one container."""
        # It depends on the fractions of all containers before it.
        return self.pins(state)[spec.id]

    def exclusive_cpus(self, state: StaticState) -> dict[str, CpuSet]:
        """Return the CPUs of containers that share none of theirs, by id."""
        entries = state.ledger.entries
        return {
            key: cpus
            for key, cpus in self.exclusive_parts(state).items()
            if not self._shares(entries[key].spec, state.grants[key])
        }

    def exclusive_parts(self, state: StaticState) -> dict[str, CpuSet]:
        """Return the CPUs that only one container has, by its id."""
        return super().exclusive_cpus(state)

    def pools(self, state: StaticState) -> tuple[PoolUse, ...]:
        """Return the use of exclusive, shared and reserved CPUs."""
        exclusive, shared, reserved = super().pools(state)
        fractions = sum(
            self._fraction(state.ledger.spec_of(key), grant)
            for key, grant in state.grants.items()
        )
        supply, taken = self.supply, state.taken
        most = max(len(supply.ordinary - taken), len(supply.isolated - taken))
        return (
            # A grant has CPUs of one of these sets.
            replace(exclusive, free=MilliCpus(ONE_CPU * most)),
            with_use(shared, shared.granted + fractions, shared.containers),
            reserved,
        )

    def reason_of(
        self, spec: ContainerSpec, placement: StaticPlacement, pin: Pin
    ) -> Reason:
        """Return the reason for a placement."""
        found = super().reason_of(spec, placement, pin)
        is_new = placement.rule is Rule.WHOLE_CPUS
        if is_new and self._shares(spec, Pin(placement.cpus)):
            return replace(found, rule=Rule.MIXED_CPUS)
        return found

    def _shares(self, spec: ContainerSpec, grant: Pin) -> bool:
        """Return whether a container without reserved CPUs runs on shared ones."""
        return not grant.cpus or self._fraction(spec, grant) > 0

    def _fraction(self, spec: ContainerSpec, grant: Pin) -> int:
        """Return the thousandths of a CPU that a container has of the shared CPUs."""
        return max(spec.request - ONE_CPU * len(grant.cpus), 0)
