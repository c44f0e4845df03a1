"""No sequence of events can make the topology-aware policy break its promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import invariant, rule

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.events import (
    ColdStartEnded,
    ContainerSpec,
    Created,
    Pin,
    PodCreated,
    PodStopped,
    Removed,
    Started,
    Stopped,
    Updated,
)
from nri_resmgr.policy.preferences import NO_PREFERENCES
from nri_resmgr.values import QosClass
from tests.laws.memory_recount import check_memory
from tests.laws.topology_aware_draws import (
    AMOUNTS,
    IDS,
    PODS,
    PRESENT,
    SETTINGS,
    STRANGERS,
    on,
    specs,
)
from tests.laws.topology_aware_node import Node
from tests.laws.topology_aware_recount import (
    check_books,
    check_capacity,
    check_exclusive,
    check_hints,
    check_kind,
    check_promises,
    check_vacated,
    held_grants,
    is_met,
    places_waiting,
)


class TopologyAwarePolicyNeverErrs(Node):
    """Anything may happen, in any order."""

    @rule(spec=specs())
    def create(self, spec: ContainerSpec) -> None:
        """A container comes."""
        free = sorted(set("abcdefgh") - self.specs.keys())
        if spec.id in self.specs and free:
            spec = msgspec.structs.replace(spec, id=free[0])
        if _place(spec) in map(_place, self.specs.values()):
            spec = msgspec.structs.replace(spec, slot="")
        self.create_in_place(spec)

    @rule(spec=specs())
    def create_without_wishes(self, spec: ContainerSpec) -> None:
        """Most containers have no annotations."""
        self.create(msgspec.structs.replace(spec, preferences=NO_PREFERENCES, hints=()))

    @rule(spec=specs())
    def create_in_place(self, spec: ContainerSpec) -> None:
        """A container may come in place of one that is gone unnoticed."""
        spec = on(self.policy.machine, spec)
        dead = [
            key
            for key, one in self.specs.items()
            if key == spec.id or (one.slot and _place(one) == _place(spec))
        ]
        decision = self.decide(Created(spec))
        if decision is None:
            return
        self.lose(dead)
        self.specs[spec.id] = spec
        self.why[spec.id] = decision.reasons[0].rule
        self.runtime[spec.id] = self.believed[spec.id] = decision.pin
        assert decision.pin == self.wanted()[spec.id]
        self.take(decision, own=spec.id)

    @rule(container=IDS, asked=AMOUNTS)
    def update(self, container: str, asked: Mapping[QosClass, dict[str, Any]]) -> None:
        """Somebody asks for other resources."""
        if (known := self.specs.get(container)) is None:
            return
        self._update(msgspec.structs.replace(known, **asked[known.qos]))

    @rule(container=IDS, spec=specs(), present=PRESENT)
    def update_oddly(self, container: str, spec: ContainerSpec, present: Pin) -> None:
        """A request for the present resources, or an update of an unknown container."""
        if (known := self.specs.get(container)) is None:
            if spec.id not in self.specs:
                self.runtime[spec.id] = self.believed[spec.id] = present
                self._update(on(self.policy.machine, spec, present))
            return
        grant = self.state.grants[container]
        self._update(known)
        assert self.state.grants[container] == grant

    @rule(container=IDS, late=st.booleans())
    def go_on(self, container: str, *, late: bool) -> None:
        """A container has begun, now or some time ago."""
        if late:
            self.end_cold_start(container)
        else:
            self.start(container)

    def start(self, container: str) -> None:
        """A container starts, perhaps an unknown one."""
        decision = self.decided(Started(container))
        self.take_silent(decision)
        assert {timer.event for timer in decision.timers} <= {ColdStartEnded(container)}

    def end_cold_start(self, container: str) -> None:
        """The time without fast memory ends, perhaps of an unknown container."""
        decision = self.decided(ColdStartEnded(container))
        if decision.reasons:
            self.take(decision)
            assert not self.decided(Started(container)).timers
        else:
            assert decision.state is self.state

    @rule(container=IDS)
    def stop(self, container: str) -> None:
        """A container stops, maybe one that never was."""
        decision = self.decided(Stopped(container))
        self.drop([container])
        self.take(decision)

    @rule(container=IDS, pod=PODS, whole=st.booleans())
    def vanish(self, container: str, pod: str, *, whole: bool) -> None:
        """A pod or container vanishes, and the answer cannot carry updates."""
        if whole:
            self.stop_pod(pod)
        else:
            self.remove(container)

    def remove(self, container: str) -> None:
        """A container goes away, with a stop or without."""
        decision = self.decided(Removed(container))
        self.lose([container])
        self.take_silent(decision)

    @rule(pod=PODS, expected=st.lists(specs(), max_size=3))
    def create_pod(self, pod: str, expected: list[ContainerSpec]) -> None:
        """A pod comes, with or without a list of its containers."""
        coming = (msgspec.structs.replace(one, id="", pod=pod) for one in expected)
        by_name = {one.name: on(self.policy.machine, one) for one in coming}
        decision = self.decide(PodCreated(pod, tuple(by_name.values())))
        if decision is not None:
            self.take_silent(decision)

    def stop_pod(self, pod: str) -> None:
        """A pod goes away with all that is left in it."""
        decision = self.decided(PodStopped(pod))
        self.lose([key for key, one in self.specs.items() if one.pod == pod])
        self.take_silent(decision)

    @rule(found=st.none() | STRANGERS)
    def start_over(self, found: list[tuple[ContainerSpec, Pin]] | None) -> None:
        """The daemon starts without a state, among known or unknown containers."""
        if found is not None:
            self.forget_all()
            self.synchronize(on(self.policy.machine, one, pin) for one, pin in found)
            return
        before, told = self.wanted(), self.settled and not self.state.reserved_places
        options = self.conditions.options
        pinned = options["pin_cpus"] and options["pin_memory"]
        certain = pinned and told and self._met() == self.specs.keys()
        self.forget_all()
        self.synchronize(self.present().values())

        assert not certain or self.wanted() == before

    @rule(left=st.sets(IDS, max_size=2), new=STRANGERS, pods=st.none() | st.sets(PODS))
    def reconnect(
        self,
        left: set[str],
        new: list[tuple[ContainerSpec, Pin]],
        pods: set[str] | None,
    ) -> None:
        """We meet again those that are still there; some left, and others came."""
        before, kept = self.state, self._met() - left
        came = {one.id: on(self.policy.machine, one, pin) for one, pin in new}
        there = {k: one for k, one in self.present().items() if k not in left}
        waiting = places_waiting(before, came | there, pods)
        certain = not new and kept == self.specs.keys()
        silent = (
            certain and self.settled and waiting.keys() == before.reserved_places.keys()
        )
        self.synchronize((came | there).values(), pods)

        for key in kept:
            assert self.state.grants[key] == before.grants[key]
            zone, now = before.memory.zone_of(key), self.state.memory.zone_of(key)
            assert zone <= now if new else zone == now
            assert self.why[key] is Rule.KEPT
        assert not silent or self.updates_of_last == 0
        assert self.state.reserved_places.items() <= waiting.items()
        assert not certain or held_grants(self.state) == held_grants(before, waiting)
        check_vacated(before, self.state, came | there, pods)

    @rule(pod=PODS, expected=st.lists(specs(), min_size=1, max_size=3))
    def reconnect_while_a_pod_waits(
        self, pod: str, expected: list[ContainerSpec]
    ) -> None:
        """The connection is lost between a pod and its containers."""
        self.create_pod(pod, expected)
        self.reconnect(set(), [], None)

    @rule(which=st.none() | st.integers(0, 2), other=SETTINGS)
    def change(self, which: int | None, other: Mapping[str, Any]) -> None:
        """CPUs and memory come and go, or the settings change."""
        if which is None:
            self.rebuild(msgspec.structs.replace(self.conditions, **other))
        else:
            text = self.machines[which % len(self.machines)]
            self.rebuild(msgspec.structs.replace(self.conditions, machine=text))
        machine, found = self.policy.machine, self.present().values()
        self.synchronize(on(machine, one, one.present) for one in found)

    @invariant()
    def grants_do_not_overlap(self) -> None:
        """CPUs of one container are of no other, and CPUs' time is given once."""
        check_exclusive(self.policy, self.state)
        check_capacity(self.policy, self.state)
        check_hints(self.policy, self.state, self.why)

    @invariant()
    def everybody_has_what_was_asked_for(self) -> None:
        """Each container has its request, unless a reason says that it fell back."""
        for key, spec in self.specs.items():
            check_kind(spec, self.state.grants[key], self.why[key])
            check_promises(spec, self.state.memory.grants[key], self.why[key])

    @invariant()
    def the_books_are_right(self) -> None:
        """The state has all containers and no others."""
        ledger = self.state.ledger
        assert {key: ledger.spec_of(key) for key in self.specs} == self.specs
        assert ledger.entries.keys() == self.specs.keys() == self.runtime.keys()
        check_books(self.policy, self.state)
        check_memory(self.policy.machine, self.state.memory)
        reserved_places = {one.id for one in self.state.reserved_places.values()}
        assert self.state.memory.grants.keys() == self.specs.keys() | reserved_places

    @invariant()
    def the_runtime_holds_what_the_state_says(self) -> None:
        """The pins that were sent add up to the desired ones."""
        wanted = self.wanted()
        assert self.policy.pins(self.state) == wanted
        if self.settled:
            assert {k: wanted[k].over(pin) for k, pin in self.runtime.items()} == (
                self.runtime
            )

    def _update(self, spec: ContainerSpec) -> None:
        key, is_new = spec.id, spec.id not in self.specs
        decision = self.decide(Updated(spec))
        if decision is None:
            assert not is_new
            return
        self.specs[key] = spec
        if (found := decision.reasons[0].rule) is not Rule.UNCHANGED:
            self.why[key] = found
        assert decision.pin == self.wanted()[key]
        self.apply(key, decision.pin)
        self.take(decision, own=key)

    def _met(self) -> set[str]:
        """Return who has all that was asked for."""
        return {
            key
            for key, spec in self.specs.items()
            if is_met(spec, self.state, self.why[key])
        }


def _place(spec: ContainerSpec) -> tuple[str, str]:
    return spec.pod, spec.slot


TestTopologyAwarePolicyNeverErrs = TopologyAwarePolicyNeverErrs.TestCase
TestTopologyAwarePolicyNeverErrs.settings = settings(
    stateful_step_count=30, deadline=None
)
