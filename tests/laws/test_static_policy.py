"""No sequence of events can make the static policy break its promises."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nri_resmgr.app.checkpoint.write import Draft
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Pin,
    PodStopped,
    Removed,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.static import (
    OnFailure,
    StaticPolicy,
    StaticSettings,
    StaticState,
)
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, NodeSet, PolicyError, QosClass
from tests.laws.policy_node import slots_won
from tests.laws.reborn import reborn

MACHINES = st.sampled_from(
    [
        "1s1n1c1t",
        "1s2n2c2t",
        "2s1n4c1t isolated=2-3",
        "1s1n2c2t4e numbering=adjacent",
        "1s2n2c2t memory=16Gi,0",
        "2s1n2c2t cxl=1x16Gi:movable ids=0,2,5",
    ]
)
IDS = st.sampled_from("abcdefg")
PODS = st.sampled_from(["p", "q"])
SLOTS = st.sampled_from(["", "web", "log"])
NAMESPACES = st.sampled_from(["default", "default", "default", "kube-system"])
MILLIS = st.sampled_from([0, 100, 1000, 1000, 2000, 2000, 3000, 4000, 2500])
CPUS = st.integers(0, 1023).map(CpuSet) | st.builds(CpuSet.of, st.integers(0, 9))


@st.composite
def specs(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container, more often than not one that asks for whole CPUs."""
    return ContainerSpec(
        id=draw(IDS),
        pod=draw(PODS),
        slot=draw(SLOTS),
        namespace=draw(NAMESPACES),
        qos=draw(st.sampled_from([QosClass.GUARANTEED, *QosClass])),
        request=MilliCpus(draw(MILLIS)),
        created=draw(st.integers(0, 3)),
        present=Pin(draw(CPUS), draw(st.sampled_from([NodeSet(), NodeSet.of(0)]))),
    )


machine_of = functools.cache(parse_spec)


class StaticPolicyNeverErrs(RuleBasedStateMachine):
    """Simulates a runtime that applies the pins that it is sent."""

    machine: Machine
    policy: StaticPolicy
    state: StaticState

    @initialize(
        spec=MACHINES,
        reserved=st.integers(1, 2),
        pins=st.sampled_from([(True, True), (True, False), (False, True)]),
        prefer_isolated=st.booleans(),
        on_failure=st.sampled_from(OnFailure),
    )
    def begin(
        self, spec: str, reserved: int, pins: tuple[bool, bool], **more: Any
    ) -> None:
        """Take a node and its settings."""
        self.machine = machine_of(spec)
        cpus, mems = pins
        ordinary = self.machine.online - self.machine.isolated
        self.policy = StaticPolicy(
            self.machine,
            StaticSettings(
                available=self.machine.online,
                reserved=ordinary.lowest(reserved),
                pin_cpus=cpus,
                pin_memory=mems,
                **more,
            ),
        )
        self.state, self.draft = self.policy.start(), Draft()
        self.runtime: dict[str, Pin] = {}
        self.specs: dict[str, ContainerSpec] = {}
        self.settled, self.lost, self.updates_of_last = True, False, 0

    @rule(spec=specs())
    def create(self, spec: ContainerSpec) -> None:
        """A container may replace one whose end was not reported."""
        spec = msgspec.structs.replace(spec, present=NO_PIN)
        dead = [
            key
            for key, one in self.specs.items()
            if key == spec.id or (one.slot and _place(one) == _place(spec))
        ]
        before = self.state
        try:
            decision = self.policy.decide(self.state, Created(spec))
        except PolicyError:
            self._refused(spec, held=CpuSet(), dead=dead)
            return
        finally:
            assert before == self.state
        for key in dead:
            self.lost = True
            self._forget(key)
        assert spec.id not in {update.container for update in decision.updates}
        self._take(decision)
        self.specs[spec.id] = spec
        self.runtime[spec.id] = decision.pin

    @rule(spec=specs())
    def update(self, spec: ContainerSpec) -> None:
        """The resources of a container change, perhaps of an unknown one."""
        if (known := self.specs.get(spec.id)) is not None:
            spec = msgspec.structs.replace(known, request=spec.request)
        try:
            decision = self.policy.decide(self.state, Updated(spec))
        except PolicyError:
            self._refused(spec, held=self.state.held_by(spec.id), dead=[])
            assert known is not None
            return
        self.specs[spec.id] = spec
        last_sent = self.runtime.get(spec.id, spec.present)
        self._take(decision)
        self.runtime[spec.id] = decision.pin.over(last_sent)

    @rule(container=IDS)
    def stop(self, container: str) -> None:
        """A container stops, maybe one that never was."""
        self._forget(container)
        self._take(self.policy.decide(self.state, Stopped(container)))

    @rule(container=IDS)
    def remove(self, container: str) -> None:
        """A container goes away, with a stop or without."""
        self._forget(container)
        self._take_silent(self.policy.decide(self.state, Removed(container)))

    @rule(pod=PODS)
    def stop_pod(self, pod: str) -> None:
        """A pod goes away with all that is left in it."""
        for key in [key for key, one in self.specs.items() if one.pod == pod]:
            self._forget(key)
        self._take_silent(self.policy.decide(self.state, PodStopped(pod)))

    @rule(found=st.lists(specs(), max_size=7))
    def restart_into_anything(self, found: list[ContainerSpec]) -> None:
        """The daemon starts without a state; containers may be pinned to anything."""
        self._synchronize({one.id: one for one in found})

    @rule()
    def reconnect(self) -> None:
        """The plugin reconnects, and finds the same containers."""
        settled, grants = self.settled, self.state.grants
        content = grants.keys() == {
            key
            for key, one in self.specs.items()
            if one.whole_cpus and one.namespace != "kube-system"
        }
        present = {
            key: msgspec.structs.replace(one, present=self.runtime[key])
            for key, one in self.specs.items()
        }
        self._synchronize(present)

        assert not (settled and content) or self.updates_of_last == 0
        assert grants.items() <= self.state.grants.items()

    @invariant()
    def no_cpu_is_in_two_grants(self) -> None:
        """The accounts agree with a recount."""
        grants = [grant.cpus for grant in self.state.grants.values()]
        assert sum(map(len, grants)) == len(CpuSet.union(grants))
        assert self.state.taken == CpuSet.union(grants)

    @invariant()
    def grants_are_what_was_asked_for_out_of_what_may_be_granted(self) -> None:
        """Requests for whole CPUs get exactly as many."""
        for key, grant in self.state.grants.items():
            assert len(grant.cpus) == self.specs[key].whole_cpus
            assert grant.cpus <= self.machine.online - self.policy.settings.reserved
            assert grant.cpus.isdisjoint(self.machine.isolated) or len(grant.cpus) == 1
            assert self.specs[key].namespace != "kube-system"

    @invariant()
    def other_containers_run_on_cpus_that_are_not_exclusive(self) -> None:
        """No pinning is empty or crosses a grant."""
        for key, pin in self.policy.pins(self.state).items():
            others = {k: g.cpus for k, g in self.state.grants.items() if k != key}
            assert pin.cpus.isdisjoint(CpuSet.union(others.values()))
            assert bool(pin.cpus) == self.policy.settings.pin_cpus
            assert bool(pin.mems) == self.policy.settings.pin_memory
            assert pin.mems <= self.machine.memory_nodes
            if pin.mems:
                assert pin.mems & self.machine.normal_nodes

    @invariant()
    def the_books_are_right(self) -> None:
        """The state has all containers and no others."""
        ledger = self.state.ledger
        assert ledger.entries.keys() == self.specs.keys() == self.runtime.keys()
        assert {key: ledger.spec_of(key) for key in self.specs} == self.specs

    @invariant()
    def the_runtime_holds_what_the_state_says(self) -> None:
        """The pins that were sent add up to the desired ones."""
        if self.settled:
            wanted = self.policy.pins(self.state)
            assert {k: wanted[k].over(pin) for k, pin in self.runtime.items()} == (
                self.runtime
            )

    def _synchronize(self, found: Mapping[str, ContainerSpec]) -> None:
        self.specs = slots_won(found)
        self.runtime = {key: one.present for key, one in found.items()}
        self._take(self.policy.decide(self.state, Synchronized(tuple(found.values()))))

    def _take(self, decision: Decision[StaticState]) -> None:
        for update in decision.updates:
            now = self.runtime[update.container]
            assert update.pin
            # After a loss all pins are sent again, needed or not.
            assert self.lost or update.pin == update.pin.since(now)
            self.runtime[update.container] = update.pin.over(now)
        self.updates_of_last = len(decision.updates)
        self.state, self.settled, self.lost = decision.state, True, False
        self.state = reborn(self.policy, self.state, self.draft)

    def _take_silent(self, decision: Decision[StaticState]) -> None:
        assert (decision.updates, decision.pin) == ((), NO_PIN)
        if decision.state.ledger != self.state.ledger:
            self.settled, self.lost = False, True
        self.state = decision.state

    def _refused(self, spec: ContainerSpec, held: CpuSet, dead: list[str]) -> None:
        settings_ = self.policy.settings
        taken = self.state.taken - CpuSet.union(map(self.state.held_by, dead))
        free = self.machine.online - settings_.reserved - self.machine.isolated - taken
        assert len((free | held) - self.machine.isolated) < spec.whole_cpus
        assert held or settings_.on_failure is OnFailure.REFUSE

    def _forget(self, container: str) -> None:
        self.specs.pop(container, None)
        self.runtime.pop(container, None)


def _place(spec: ContainerSpec) -> tuple[str, str]:
    return spec.pod, spec.slot


TestStaticPolicyNeverErrs = StaticPolicyNeverErrs.TestCase
TestStaticPolicyNeverErrs.settings = settings(stateful_step_count=30, deadline=None)
