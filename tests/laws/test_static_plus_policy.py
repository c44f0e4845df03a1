"""No sequence of events can make the static-plus policy break its promises."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import initialize, invariant, rule

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.static import OnFailure
from nri_resmgr.policy.static_plus import StaticPlusPolicy, StaticPlusSettings
from nri_resmgr.values import CpuSet
from tests.examples import steps
from tests.laws.pinned_node import IDS
from tests.laws.test_static_policy import (
    MACHINES,
    StaticPolicyNeverErrs,
    _shares,
    machine_of,
)


class StaticPlusPolicyNeverErrs(StaticPolicyNeverErrs):
    """Simulates a runtime that applies the pins that it is sent."""

    policy: StaticPlusPolicy

    @initialize(
        spec=MACHINES,
        reserved=st.integers(1, 2),
        pins=st.sampled_from([(True, True), (True, False), (False, True)]),
        prefer_isolated=st.booleans(),
        on_failure=st.sampled_from(OnFailure),
    )
    def begin(
        self,
        spec: str,
        reserved: int,
        pins: tuple[bool, bool],
        prefer_isolated: bool,  # noqa: FBT001 - drawn by name
        on_failure: OnFailure,
    ) -> None:
        """Take a node and its settings."""
        super().begin(spec, reserved=1, pins=pins)
        machine = machine_of(spec)
        ordinary = machine.online - machine.isolated
        found = StaticPlusSettings(
            available=machine.online,
            reserved=ordinary.lowest(reserved),
            pin_cpus=pins[0],
            pin_memory=pins[1],
            prefer_isolated=prefer_isolated,
            on_failure=on_failure,
        )
        self.policy = StaticPlusPolicy(machine, found)
        self.state = self.policy.start()

    @rule(container=IDS, milli=st.sampled_from([0, 300, 1300, 1700, 2300]))
    def change_a_fraction(self, container: str, milli: int) -> None:
        """The request of a known container becomes one with a fraction."""
        if (known := self.specs.get(container)) is not None:
            self.update(spec=msgspec.structs.replace(known, request=milli))

    @rule()
    def reconnect(self) -> None:
        """The plugin reconnects, and finds the same containers."""
        grants, fallen = self.state.grants, list(self._fallen())
        present = {
            key: msgspec.structs.replace(one, present=self.runtime[key])
            for key, one in self.specs.items()
        }
        self.synchronize(present)

        assert fallen or grants == self.state.grants

    @invariant()
    def grants_are_what_was_asked_for_out_of_what_may_be_granted(self) -> None:
        """The whole CPUs of a request are isolated, or all are ordinary."""
        for key, grant in self.state.grants.items():
            spec, isolated = self.specs[key], self.machine.isolated
            assert len(grant.cpus) == int(spec.request / 1000)
            assert grant.cpus <= self.machine.online - self.policy.settings.reserved
            assert grant.cpus <= isolated or grant.cpus.isdisjoint(isolated)
            assert not grant.cpus & isolated or self._may_isolate(spec)
            assert not _shares(spec)

    @invariant()
    def no_container_falls_back_needlessly(self) -> None:
        """A container that asks for whole CPUs and shares would not fit, either."""
        taken = self.state.taken
        free = self._ordinary() - taken
        for spec in self._fallen():
            assert len(self._room(spec, free, taken)) < int(spec.request / 1000)

    @invariant()
    def other_containers_run_on_cpus_that_are_not_exclusive(self) -> None:
        """Each pin equals a recount from the grants."""
        machine, rules = self.machine, self.policy.settings
        granted = {cpu for one in self.state.grants.values() for cpu in one.cpus}
        shared = {*self._ordinary()} - granted
        room, pins = 1000 * len(shared), self.policy.pins(self.state)
        for key, entry in self.state.ledger.entries.items():
            spec, pin = entry.spec, pins[key]
            own = {*self.state.held_by(key)}
            kept = spec.preferences.preserve_cpus
            assert bool(pin.cpus) == bool(pin.shares) == (rules.pin_cpus and not kept)
            kept = kept or spec.preferences.preserve_memory
            assert bool(pin.mems) == (rules.pin_memory and not kept)
            assert not pin.mems or pin.mems & machine.normal_nodes
            fraction = spec.request - 1000 * len(own)
            wanted, weight = {*own}, fraction or spec.request
            if spec.preferences.preserve_cpus:
                continue
            if not own and self._is_reserved(spec):
                wanted, weight = {*rules.reserved}, spec.request
            elif fraction or not own:
                wanted |= shared
                room -= fraction
                if room < 0 or not shared:
                    wanted |= {*rules.reserved}
            if pin.cpus:
                assert {*pin.cpus} == wanted
                assert pin.shares == max(weight * 1024 // 1000, 2)

    @invariant()
    def pools_add_up(self) -> None:
        """The fractions in the shared pool are those of all that share."""
        _, shared, reserved = self.policy.pools(self.state)
        inside = [self.specs[key].request for key in shared.containers]
        mixed = [
            self.specs[key].request - 1000 * len(one.cpus)
            for key, one in self.state.grants.items()
        ]
        assert shared.granted == sum(inside) + sum(mixed)
        assert reserved.cpus == self.policy.settings.reserved

    def _fallen(self) -> Iterator[ContainerSpec]:
        for key, spec in self.specs.items():
            asks = spec.request >= 1000 and not _shares(spec)
            if asks and key not in self.state.grants:
                yield spec

    def _is_reserved(self, spec: ContainerSpec) -> bool:
        asked = spec.preferences.reserved
        return spec.namespace == "kube-system" if asked is None else asked

    def _ordinary(self) -> CpuSet:
        reserved = self.policy.settings.reserved
        return self.machine.online - self.machine.isolated - reserved

    def _may_isolate(self, spec: ContainerSpec) -> bool:
        asked = spec.preferences.isolated
        return self.policy.settings.prefer_isolated if asked is None else asked

    def _refused(self, spec: ContainerSpec, held: CpuSet, dead: list[str]) -> None:
        taken = self.state.taken - CpuSet.union(map(self.state.held_by, dead)) - held
        free = self._ordinary() - taken
        assert len(self._room(spec, free, taken)) < int(spec.request / 1000)
        assert held or self.policy.settings.on_failure is OnFailure.REFUSE


TestStaticPlusPolicyNeverErrs = StaticPlusPolicyNeverErrs.TestCase
TestStaticPlusPolicyNeverErrs.settings = steps(30)
