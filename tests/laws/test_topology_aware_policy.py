"""No sequence of events can make the topology-aware policy break its promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import invariant, rule

from nri_resmgr.policy.events import (
    ColdStartEnded,
    ContainerSpec,
    Created,
    Pin,
    PodCreated,
    PodOverhead,
    PodStopped,
    Rebalance,
    Removed,
    Started,
    Stopped,
)
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.policy.preferences import NO_PREFERENCES
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.place import find_place
from nri_resmgr.policy.topology_aware.state import NodeView, TopologyAwareState
from nri_resmgr.values import CpuSet, PolicyError, QosClass
from tests.examples import steps
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
    def create_without_annotations(self, spec: ContainerSpec) -> None:
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
        """A container requests other resources."""
        if (known := self.specs.get(container)) is None:
            return
        self.update_to(msgspec.structs.replace(known, **asked[known.qos]))

    @rule(container=IDS, spec=specs(), present=PRESENT)
    def update_oddly(self, container: str, spec: ContainerSpec, present: Pin) -> None:
        """A request for the present resources, or an update of an unknown container."""
        if (known := self.specs.get(container)) is None:
            if spec.id not in self.specs:
                self.runtime[spec.id] = self.believed[spec.id] = present
                self.update_to(on(self.policy.machine, spec, present))
            return
        grant = self.state.grants[container]
        self.update_to(known)
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

    @rule(limit=st.integers(1, 3), leave=st.booleans())
    def rebalance(self, limit: int, *, leave: bool) -> None:
        """Containers move to where they would be placed if they came now."""
        if leave:
            # Else there is seldom a better place: they came where most was free.
            for key, grant in self.state.grants.items():
                if grant.cpus and key in self.specs:  # not a reserved place
                    self.stop(key)
        before, decision = self.state, self.decided(Rebalance(limit))
        rules = {one.container: one.rule for one in decision.reasons}
        moved = [key for key, one in rules.items() if one is Rule.REBALANCED]
        assert len(moved) <= limit
        assert moved or not rules
        if limit == 1 and len(rules) == 1:
            self._check_move(moved[0], decision.state)
        if rules:
            self.take(decision)
        else:
            assert decision.state is self.state
        for key in moved:
            assert before.grants[key].kind is CpuKind.SHARED
            assert before.grants[key].pool != self.state.grants[key].pool
        for key, grant in before.grants.items():
            exclusive = grant.cpus and not grant.fell_back
            assert not exclusive or self.state.grants[key] == grant
            zone = before.memory.zone_of(key)
            assert zone <= self.state.memory.zone_of(key)

    def _check_move(self, container: str, after: TopologyAwareState) -> None:
        """Compare with the place that an equal container gets that comes instead."""
        fell_back = any(one.fell_back for one in self.state.grants.values())
        if fell_back or self.state.reserved_places:
            return
        new = msgspec.structs.replace(self.specs[container], id="new", slot="")
        left = self.policy.decide(self.state, Stopped(container)).state
        placed = self.policy.decide(left, Created(new)).state
        assert placed.grants["new"].pool == after.grants[container].pool

    @rule(container=IDS)
    def stop(self, container: str) -> None:
        """A container stops, maybe one that never was."""
        decision = self.decided(Stopped(container))
        self.drop([container])
        self.take(decision)

    @rule(container=IDS, pod=PODS, whole=st.booleans())
    def vanish(self, container: str, pod: str, *, whole: bool) -> None:
        """A pod or container vanishes; the updates are sent apart from the answer."""
        if whole:
            self.stop_pod(pod)
        else:
            self.remove(container)

    def remove(self, container: str) -> None:
        """A container goes away, with a stop or without."""
        # A place that was reserved changes pins, which the pod's answer cannot carry.
        has_updates = container in self.specs or self.state.unsettled
        decision = self.decided(Removed(container))
        self.lose([container])
        if has_updates:
            self.take(decision)
        else:
            self.take_silent(decision)  # a removal follows each stop: it costs nothing

    @rule(pod=PODS, expected=st.lists(specs(), max_size=3), own=st.none() | specs())
    def create_pod(
        self, pod: str, expected: list[ContainerSpec], own: ContainerSpec | None = None
    ) -> None:
        """A pod comes, with or without a list of its containers, and an overhead."""
        overhead = self._overhead(pod, own) if own else None
        coming = (msgspec.structs.replace(one, id="", pod=pod) for one in expected)
        by_name = {one.name: on(self.policy.machine, one) for one in coming}
        event = PodCreated(pod, tuple(by_name.values()), overhead=overhead)
        decision = self.decide(event)
        # It may reserve less than before, and others may have made way for it.
        if decision is not None and decision.updates:
            self.take(decision)
        elif decision is not None:
            self.take_silent(decision)

    @rule(pod=PODS, own=specs())
    def account_overhead(self, pod: str, own: ContainerSpec) -> None:
        """The overhead of a pod is reported, for the first time, again or changed."""
        slot, event = (pod, OVERHEAD_NAME), PodOverhead(pod, self._overhead(pod, own))
        others = held_grants(self.state, _without(self.state.reserved_places, slot))
        decision = self.decided(event)
        if decision.updates:
            self.take(decision)
        else:
            self.take_silent(decision)

        places = self.state.reserved_places
        assert held_grants(self.state, _without(places, slot)).keys() == others.keys()
        if place := places.get(slot):
            granted = self.state.grants[place.id]
            assert granted.cpus == CpuSet()
            assert granted.fraction <= place.request == own.request
            if self._overheads_met():
                assert self.decided(event).state is self.state
        else:
            reserved = own.preferences.reserved or own.preferences.preserve_cpus
            left = self.state.pool_ledger.free_sharable(self.policy.tree.root)
            assert reserved or own.namespace == "kube-system" or not left

    def _overhead(self, pod: str, own: ContainerSpec) -> ContainerSpec:
        # No device is a pod's own, nor are huge pages.
        none = msgspec.structs.replace(own, id="", slot="", hugepages=(), hints=())
        spec = msgspec.structs.replace(
            none, pod=pod, name=OVERHEAD_NAME, qos=QosClass.BURSTABLE
        )
        return on(self.policy.machine, spec)

    def stop_pod(self, pod: str) -> None:
        """A pod goes away with all that is left in it."""
        decision = self.decided(PodStopped(pod))
        self.lose([key for key, one in self.specs.items() if one.pod == pod])
        self.take(decision)

    @rule(found=st.none() | STRANGERS)
    def start_over(self, found: list[tuple[ContainerSpec, Pin]] | None) -> None:
        """The daemon starts without a state, among known or unknown containers."""
        if found is not None:
            self.forget_all()
            self.synchronize(on(self.policy.machine, one, pin) for one, pin in found)
            return
        before = self.wanted()
        is_settled = self.settled and not self.state.reserved_places
        options = self.conditions.options
        pinned = options["pin_cpus"] and options["pin_memory"]
        certain = pinned and is_settled and self._met() == self.specs.keys()
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
        certain = not new and kept == self.specs.keys() and self._overheads_met()
        silent = (
            certain and self.settled and waiting.keys() == before.reserved_places.keys()
        )
        self.synchronize((came | there).values(), pods)

        for key in kept:
            grant = before.grants[key]
            # Without a request one makes way for others that came meanwhile.
            displaced = new and self.why[key] in (Rule.MOVED, Rule.FELL_BACK)
            if displaced:
                assert not self.specs[key].request
                assert not grant.cpus
            else:
                assert self.why[key] is Rule.KEPT
                assert self.state.grants[key] == grant
            zone, now = before.memory.zone_of(key), self.state.memory.zone_of(key)
            assert zone <= now if new else zone == now
        assert not silent or self.updates_of_last == 0
        assert self.state.reserved_places.items() <= waiting.items()
        assert not certain or held_grants(self.state) == held_grants(before, waiting)
        check_vacated(before, self.state, came | there, pods)

    @rule(decisions=st.integers(0, 50))
    def die(self, decisions: int) -> None:
        """The daemon is killed, and its checkpoint may be older than what runs."""
        before, state, kept = self.wanted(), self.state, self._met()
        options = self.conditions.options
        pinned = options["pin_cpus"] and options["pin_memory"]
        settled = pinned and self.settled
        certain = settled and kept == self.specs.keys() and not state.reserved_places
        all_granted = self.kill(decisions)

        assert not certain or (all_granted and self.wanted() == before)
        for key in kept if settled else ():
            grant = state.grants[key]
            if grant.kind is CpuKind.EXCLUSIVE:
                assert self.state.grants[key].cpus == grant.cpus, key

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
    def all_containers_have_their_requests(self) -> None:
        """Each container has its request, unless a reason says that it fell back."""
        for key, spec in self.specs.items():
            check_kind(spec, self.state.grants[key], self.why[key])
            check_promises(spec, self.state.memory.grants[key], self.why[key])

    @invariant()
    def no_container_falls_back_needlessly(self) -> None:
        """What fell back could not be placed now, either, and all others fit."""
        fell_back = (Rule.FELL_BACK, Rule.RESERVED_FULL)
        for key, spec in self.specs.items():
            assert self.state.grants[key].fell_back == (self.why[key] in fell_back)
            if self.why[key] in fell_back:
                left = self.state.take_back(key)
                demand = demand_of(spec, self.policy.settings)
                assert not fits(demand, left.view(self.policy.settings)), key

    @invariant()
    def exclusive_cpus_are_in_no_other_pin(self) -> None:
        """What the runtime has keeps each container off the CPUs of others."""
        if not self.settled or not self.policy.settings.pin_cpus:
            return
        for key, grant in self.state.grants.items():
            for other, pin in self.runtime.items():
                free = self.state.grants[other].kind is CpuKind.PRESERVED
                assert key == other or free or grant.cpus.isdisjoint(pin.cpus)

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
    def the_runtime_has_the_pins_of_the_state(self) -> None:
        """The pins that were sent add up to the desired ones."""
        wanted = self.wanted()
        assert self.policy.pins(self.state) == wanted
        if self.settled:
            assert {k: wanted[k].over(pin) for k, pin in self.runtime.items()} == (
                self.runtime
            )

    def _overheads_met(self) -> bool:
        """Return whether all overheads are accounted in full; others come again."""
        return all(
            is_met(one, self.state, Rule.POD_OVERHEAD)
            and self.state.grants[one.id].fraction == one.request
            for one in self.state.reserved_places.values()
            if one.name == OVERHEAD_NAME
        )

    def _met(self) -> set[str]:
        """Return the containers that have all that they request."""
        return {
            key
            for key, spec in self.specs.items()
            if is_met(spec, self.state, self.why[key])
        }


def fits(demand: Demand, view: NodeView) -> bool:
    """Return whether a container can be placed as it asks."""
    try:
        return not find_place(demand, view).grant.fell_back
    except PolicyError:
        return False


def _without(
    places: Mapping[tuple[str, str], ContainerSpec], slot: tuple[str, str]
) -> dict[tuple[str, str], ContainerSpec]:
    return {key: one for key, one in places.items() if key != slot}


def _place(spec: ContainerSpec) -> tuple[str, str]:
    return spec.pod, spec.slot


TestTopologyAwarePolicyNeverErrs = TopologyAwarePolicyNeverErrs.TestCase
TestTopologyAwarePolicyNeverErrs.settings = steps(30)
