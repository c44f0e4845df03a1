"""No sequence of events can make the static policy break its promises."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import initialize, invariant, rule

from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Pin,
    PodCreated,
    PodStopped,
    Removed,
    Updated,
)
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.static import (
    OnFailure,
    StaticPolicy,
    StaticSettings,
    StaticState,
)
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, NodeSet, PolicyError, QosClass
from tests.examples import steps
from tests.laws.pinned_node import IDS, PinnedNode
from tests.topology.odd_machines import odd_specs

MACHINES = odd_specs() | st.sampled_from(
    [
        "1s1n1c1t",
        "1s2n2c2t",
        "2s1n4c1t isolated=2-3",
        "1s1n2c2t4e numbering=adjacent",
        "1s2n2c2t memory=16Gi,0",
        "2s1n2c2t cxl=1x16Gi:movable ids=0,2,5",
        "4s1c2t around=2",
        "1s4c1t emulated=2",
    ]
)
PODS = st.sampled_from(["p", "q"])
SLOTS = st.sampled_from(["", "web", "log"])
NAMES = st.sampled_from(["web", "log"])
NAMESPACES = st.sampled_from(["default", "default", "default", "kube-system"])
MILLIS = st.sampled_from([0, 100, 1000, 1000, 2000, 2000, 3000, 4000, 2500])
PREFERENCES = st.sampled_from(
    [
        *(NO_PREFERENCES,) * 5,
        Preferences(preserve_cpus=True),
        Preferences(preserve_memory=True),
        Preferences(shared=True),
        Preferences(reserved=True),
        Preferences(reserved=False),
        Preferences(isolated=True),
        Preferences(isolated=False),
        Preferences(preserve_cpus=True, reserved=True),
    ]
)
CPUS = st.integers(0, 1023).map(CpuSet) | st.builds(CpuSet.of, st.integers(0, 9))


@st.composite
def specs(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container, more often than not one that asks for whole CPUs."""
    return ContainerSpec(
        id=draw(IDS),
        pod=draw(PODS),
        slot=draw(SLOTS),
        name=draw(NAMES),
        namespace=draw(NAMESPACES),
        qos=draw(st.sampled_from([QosClass.GUARANTEED, *QosClass])),
        request=MilliCpus(draw(MILLIS)),
        preferences=draw(PREFERENCES),
        created=draw(st.integers(0, 3)),
        present=Pin(draw(CPUS), draw(st.sampled_from([NodeSet(), NodeSet.of(0)]))),
    )


machine_of = functools.lru_cache(256)(parse_spec)


class StaticPolicyNeverErrs(PinnedNode):
    """Simulates a runtime that applies the pins that it is sent."""

    machine: Machine
    policy: StaticPolicy
    state: StaticState

    @initialize(
        spec=MACHINES,
        reserved=st.integers(1, 2),
        pins=st.sampled_from([(True, True), (True, False), (False, True)]),
        prefer_isolated=st.booleans(),
        relaxed_isolation=st.booleans(),
        borrow_isolated=st.booleans(),
        on_failure=st.sampled_from(OnFailure),
        place_pods=st.sampled_from(PodPlacement),
    )
    def begin(
        self, spec: str, reserved: int, pins: tuple[bool, bool], **more: Any
    ) -> None:
        """Take a node and its settings."""
        self.machine = machine_of(spec)
        cpus, mems = pins
        ordinary = self.machine.online - self.machine.isolated
        settings_ = StaticSettings(
            available=self.machine.online,
            reserved=ordinary.lowest(reserved),
            pin_cpus=cpus,
            pin_memory=mems,
            **more,
        )
        self.begin_with(StaticPolicy(self.machine, settings_))
        self.lost, self.updates_of_last = False, 0
        self.expected: dict[tuple[str, str], int] = {}  # CPUs that are reserved
        self.announced: dict[str, set[str]] = {}

    @rule(spec=specs())
    def create(self, spec: ContainerSpec) -> None:
        """A container may replace one whose end was not reported."""
        spec = msgspec.structs.replace(spec, present=NO_PIN)
        dead = self.replaced_by(spec)
        before = self.state
        try:
            decision = self.policy.decide(self.state, Created(spec))
        except PolicyError:
            if not self._surprises(spec):
                self._refused(spec, held=CpuSet(), dead=dead)
            return
        finally:
            assert before == self.state
        for key in dead:
            self.lost = True
            self.forget(key)
        assert spec.id not in {update.container for update in decision.updates}
        place = (spec.pod, spec.name)
        if (count := self.expected.pop(place, None)) is not None:
            assert before.reserved_places[place].spec.whole_cpus == count
            if count == spec.whole_cpus and not _shares(spec):
                assert decision.reasons[0].rule is Rule.OLD_PLACE
        self.take(decision)
        self.specs[spec.id] = spec
        self.runtime[spec.id] = decision.pin

    @rule(pod=PODS, expected=st.lists(specs(), min_size=1, max_size=2))
    def create_pod(self, pod: str, expected: list[ContainerSpec]) -> None:
        """A pod announces its containers: all get exclusive CPUs, or none does."""
        by_name = {
            one.name: msgspec.structs.replace(one, id="", pod=pod, slot="")
            for one in expected
        }
        mode, before = self.policy.settings.place_pods, self.state
        asking = {
            name: one.whole_cpus
            for name, one in by_name.items()
            if one.whole_cpus and not _shares(one)
        }
        room = self.machine.online - self.policy.settings.reserved
        mine = {key for key in self.expected if key[0] == pod}
        kept = (one.cpus for key, one in before.reserved_places.items() if key in mine)
        room -= self.state.taken - CpuSet.union(kept)
        try:
            decision = self.policy.decide(
                self.state, PodCreated(pod, tuple(by_name.values()))
            )
        except PolicyError:
            assert mode is PodPlacement.STRICT
            assert len(room - self.machine.isolated) < sum(asking.values())
            return
        placed = [one for one in decision.reasons if one.rule is Rule.POD_PLACED]
        if placed:
            for key in mine:
                del self.expected[key]
            self.expected |= {(pod, name): count for name, count in asking.items()}
            self.announced[pod] = set(by_name)
        else:
            fell_back = [one.rule for one in decision.reasons] == [Rule.FELL_BACK]
            assert not asking or mode is PodPlacement.OFF or fell_back
            assert decision.state is before
        self.take(decision)

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
        self.take(decision)
        self.runtime[spec.id] = decision.pin.over(last_sent)

    @rule(container=IDS)
    def remove(self, container: str) -> None:
        """A container goes away, with a stop or without."""
        self.forget(container)
        self._take_lost(self.policy.decide(self.state, Removed(container)))

    @rule(pod=PODS)
    def stop_pod(self, pod: str) -> None:
        """A pod goes away with all that is left in it."""
        for key in [key for key, one in self.specs.items() if one.pod == pod]:
            self.forget(key)
        for place in [one for one in self.expected if one[0] == pod]:
            del self.expected[place]
        self.announced.pop(pod, None)
        self._take_lost(self.policy.decide(self.state, PodStopped(pod)))

    @rule(found=st.lists(specs(), max_size=7))
    def restart_into_anything(self, found: list[ContainerSpec]) -> None:
        """The daemon starts without a state; containers may be pinned to anything."""
        self.synchronize({one.id: one for one in found})

    @rule()
    def reconnect(self) -> None:
        """The plugin reconnects, and finds the same containers."""
        grants, places = self.state.grants, dict(self.expected)
        content = grants.keys() == {
            key
            for key, one in self.specs.items()
            if one.whole_cpus and not _shares(one)
        }
        present = {
            key: msgspec.structs.replace(one, present=self.runtime[key])
            for key, one in self.specs.items()
        }
        self.synchronize(present)

        # A place of one that runs is dropped: its pod was announced again.
        content = content and places == self.expected
        assert not content or self.updates_of_last == 0
        assert grants.items() <= self.state.grants.items()

    @invariant()
    def no_cpu_is_in_two_grants(self) -> None:
        """The accounts agree with a recount."""
        places = self.state.reserved_places
        assert {key: len(one.cpus) for key, one in places.items()} == self.expected
        grants = [grant.cpus for grant in self.state.grants.values()]
        grants += [one.cpus for one in places.values()]
        assert sum(map(len, grants)) == len(CpuSet.union(grants))
        assert self.state.taken == CpuSet.union(grants)

    @invariant()
    def grants_are_what_was_asked_for_out_of_what_may_be_granted(self) -> None:
        """Requests for whole CPUs get exactly as many."""
        for key, grant in self.state.grants.items():
            assert len(grant.cpus) == self.specs[key].whole_cpus
            assert grant.cpus <= self.machine.online - self.policy.settings.reserved
            isolated = grant.cpus & self.machine.isolated
            assert len(isolated) < 2 or self._may_isolate(self.specs[key])
            assert grant.cpus in (isolated, grant.cpus - isolated) or (
                self.policy.settings.borrow_isolated
            )
            assert not _shares(self.specs[key])

    @invariant()
    def no_container_falls_back_needlessly(self) -> None:
        """A container that asks for whole CPUs and shares would not fit, either."""
        rules, taken, isolated = (
            self.policy.settings,
            self.state.taken,
            self.machine.isolated,
        )
        free = self.machine.online - rules.reserved - isolated - taken
        for key, spec in self.specs.items():
            if key not in self.state.grants and not _shares(spec):
                assert not 0 < spec.whole_cpus <= len(self._room(spec, free, taken))
                alone = rules.prefer_isolated and spec.whole_cpus == 1
                out = spec.preferences.isolated is False
                assert not alone or out or isolated <= taken

    @invariant()
    def other_containers_run_on_cpus_that_are_not_exclusive(self) -> None:
        """No pinning is empty or crosses a grant."""
        for key, pin in self.policy.pins(self.state).items():
            others = {k: g.cpus for k, g in self.state.grants.items() if k != key}
            assert pin.cpus.isdisjoint(CpuSet.union(others.values()))
            settings_, asked = self.policy.settings, self.specs[key].preferences
            kept, memory_kept = asked.preserve_cpus, asked.preserve_memory
            assert bool(pin.cpus) == (settings_.pin_cpus and not kept)
            assert bool(pin.mems) == (
                settings_.pin_memory and not (kept or memory_kept)
            )
            assert pin.mems <= self.machine.memory_nodes
            if pin.mems:
                assert pin.mems & self.machine.normal_nodes

    @invariant()
    def the_books_are_right(self) -> None:
        """The state has all containers and no others."""
        ledger = self.state.ledger
        assert ledger.entries.keys() == self.specs.keys() == self.runtime.keys()
        assert {key: ledger.spec_of(key) for key in self.specs} == self.specs

    def synchronize(self, found: Mapping[str, ContainerSpec]) -> None:
        """Replace all containers; places of pods that came meanwhile are dropped."""
        before = self.state.reserved_places
        super().synchronize(found)
        # What runs goes first: those that came while we were away may run there.
        named = {(one.pod, one.name) for one in found.values()}
        granted = CpuSet.union(one.cpus for one in self.state.grants.values())
        self.expected = {
            key: count
            for key, count in self.expected.items()
            if key not in named and not before[key].cpus & granted
        }

    def _surprises(self, spec: ContainerSpec) -> bool:
        """Whether a container is not as its pod announced, where that is refused."""
        if self.policy.settings.place_pods is not PodPlacement.STRICT:
            return False
        if (count := self.expected.get((spec.pod, spec.name))) is not None:
            return count != spec.whole_cpus or _shares(spec)
        return spec.name not in self.announced.get(spec.pod, {spec.name})

    def take(self, decision: Decision[StaticState]) -> None:
        """Apply the updates: of changed values only."""
        for update in decision.updates:
            assert update.pin
            # After a loss all pins are sent again, needed or not.
            now = self.runtime[update.container]
            assert self.lost or update.pin == update.pin.since(now)
        self.updates_of_last, self.lost = len(decision.updates), False
        super().take(decision)

    def _take_lost(self, decision: Decision[StaticState]) -> None:
        """Apply the updates after a loss, which are sent apart from the answer."""
        assert decision.pin == NO_PIN
        self.lost = decision.state.ledger != self.state.ledger
        self.take(decision)

    def _refused(self, spec: ContainerSpec, held: CpuSet, dead: list[str]) -> None:
        settings_ = self.policy.settings
        taken = self.state.taken - CpuSet.union(map(self.state.held_by, dead))
        free = self.machine.online - settings_.reserved - self.machine.isolated - taken
        free |= held - self.machine.isolated
        assert len(self._room(spec, free, taken - held)) < spec.whole_cpus
        assert held or settings_.on_failure is OnFailure.REFUSE

    def _may_isolate(self, spec: ContainerSpec) -> bool:
        """Whether a container may get several isolated CPUs."""
        rules, asked = self.policy.settings, spec.preferences.isolated
        relaxed = rules.relaxed_isolation if asked is None else asked
        return relaxed or rules.borrow_isolated

    def _room(self, spec: ContainerSpec, free: CpuSet, taken: CpuSet) -> CpuSet:
        """Return the largest set that a grant can be taken from."""
        isolated = self.machine.isolated - taken
        if self.policy.settings.borrow_isolated:
            return free | isolated
        return max(free, isolated, key=len) if self._may_isolate(spec) else free


def _shares(spec: ContainerSpec) -> bool:
    """Whether a container has no exclusive CPUs, however many it asks for."""
    asked, is_of_system = spec.preferences, spec.namespace == "kube-system"
    if asked.reserved is not None:
        is_of_system = asked.reserved
    return asked.preserve_cpus or bool(asked.shared) or is_of_system


TestStaticPolicyNeverErrs = StaticPolicyNeverErrs.TestCase
TestStaticPolicyNeverErrs.settings = steps(30)
