"""No sequence of events can make the balloons policy break its promises."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import invariant, rule

from nri_resmgr.policy.balloons.choose_balloon import choose_balloon
from nri_resmgr.policy.balloons.lifecycle import vacate
from nri_resmgr.policy.balloons.place import search_for
from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Pin,
    PodCreated,
    PodStopped,
    Removed,
    Started,
    Stopped,
)
from nri_resmgr.policy.preferences import NO_PREFERENCES
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.values import CpuSet, PolicyError, QosClass
from tests.examples import steps
from tests.laws.balloons_draws import (
    CLASSES,
    OTHERS,
    containers,
    documents,
    with_classes,
)
from tests.laws.balloons_node import Node, State, reserved_exactly
from tests.laws.balloons_recount import (
    check_balloons,
    check_disjoint,
    check_numbers,
    could_take,
    cpus_of,
    idle,
    is_as_before,
    is_preserved,
    leaves,
    makes_way,
    mates_with_room,
    overloaded,
    scheduling_of,
    short_leaves,
    type_of,
)
from tests.laws.memory_recount import check_memory
from tests.laws.topology_aware_draws import AMOUNTS, IDS, PODS, PRESENT, on


class BalloonsPolicyNeverErrs(Node):
    """Anything may happen, in any order."""

    short: frozenset[str] = frozenset()
    crowded: frozenset[str] = frozenset()

    def check(self, decision: Decision[State]) -> None:
        """Collect containers that fell back; their refusals are in the reasons."""
        super().check(decision)
        self.crowded |= {one.container for one in decision.reasons if one.detail}

    @rule(spec=containers())
    def create(self, spec: ContainerSpec) -> None:
        """A container comes."""
        free = sorted(set("abcdefgh") - self.specs.keys())
        if spec.id in self.specs and free:
            spec = msgspec.structs.replace(spec, id=free[0])
        if _place(spec) in map(_place, self.specs.values()):
            spec = msgspec.structs.replace(spec, slot="")
        self.create_in_place(spec)

    @rule(spec=containers())
    def create_without_annotations(self, spec: ContainerSpec) -> None:
        """Most containers have no annotations."""
        self.create(msgspec.structs.replace(spec, preferences=NO_PREFERENCES, hints=()))

    @rule(spec=containers())
    def create_in_place(self, spec: ContainerSpec) -> None:
        """A container may replace one whose end was not reported."""
        spec = on(self.policy.machine, spec)
        dead = [
            key
            for key, one in self.specs.items()
            if key == spec.id or (one.slot and _place(one) == _place(spec))
        ]
        before = self.state
        decision = self.decide(Created(spec))
        if decision is None:
            surprises = self._surprises(spec, before)
            assert dead or surprises or not could_take(spec, self.policy, before)
            return
        room = before.reserved_rooms.get((spec.pod, spec.name))
        if room and room.spec.request == spec.request and not dead:
            same = type_of(room.spec, self.policy) == type_of(spec, self.policy)
            kept = is_preserved(spec, self.policy)
            where = decision.state.memberships[spec.id].balloon
            assert not same or kept or where == room.balloon
        mates = set()
        if not (dead or room):
            mates = mates_with_room(spec, self.policy, before)
        self.lose(dead)
        self.specs[spec.id] = spec
        self.why[spec.id] = decision.reasons[0].rule
        self.runtime[spec.id] = self.believed[spec.id] = decision.pin
        assert decision.pin == self.wanted()[spec.id]
        assert decision.scheduling == scheduling_of(spec, self.policy)
        self.take(decision, own=spec.id)
        others = (Rule.PRESERVED, Rule.OLD_PLACE)
        assert (
            not mates
            or self.why[spec.id] in others
            or (self.state.memberships[spec.id].balloon in mates)
        )

    @rule(pod=PODS, expected=st.lists(containers(), min_size=1, max_size=3))
    def create_pod(self, pod: str, expected: list[ContainerSpec]) -> None:
        """A pod announces its containers: all have room in a balloon each, or none."""
        coming = (msgspec.structs.replace(one, id="", pod=pod) for one in expected)
        by_name = {one.name: on(self.policy.machine, one) for one in coming}
        before = self.state
        decision = self.decide(PodCreated(pod, tuple(by_name.values())))
        mode = self.policy.settings.place_pods
        if decision is None:
            assert mode is PodPlacement.STRICT
            return
        rooms = {
            name: room
            for (of, name), room in self.state.reserved_rooms.items()
            if of == pod
        }
        placed = any(one.rule is Rule.POD_PLACED for one in decision.reasons)
        if not placed:
            # Announced again, a pod may need no room any more.
            assert not rooms or self.state.reserved_rooms == before.reserved_rooms
        else:
            kinds = {kind.name: kind for kind in self.policy.settings.types}
            types = {name: type_of(one, self.policy) for name, one in by_name.items()}
            wanted = {
                name
                for name, kind in types.items()
                if not is_preserved(by_name[name], self.policy)
                and kind != "reserved"
                and not kinds[kind or ""].spread_pods
            }
            assert rooms.keys() <= wanted
            # Those of a type need no room where all of them would make way.
            for name in wanted - rooms.keys():
                same = [one for one in wanted if types[one] == types[name]]
                assert all(makes_way(by_name[one]) for one in same)
            where = {(types[name], room.balloon) for name, room in rooms.items()}
            assert len(where) == len({types[name] for name in rooms})
        self.take(decision)

    def _came_twice(self) -> bool:
        """Whether a running pod was announced again; a new session forgets that."""
        named = {(one.pod, one.name) for one in self.specs.values()}
        return not named.isdisjoint(self.state.reserved_rooms)

    def _surprises(self, spec: ContainerSpec, before: State) -> bool:
        """Whether a container is not as its pod announced, where that is refused."""
        if self.policy.settings.place_pods is not PodPlacement.STRICT:
            return False
        if (spec.pod, spec.name) in before.reserved_rooms:
            room = before.reserved_rooms[spec.pod, spec.name].spec
            same = type_of(room, self.policy) == type_of(spec, self.policy)
            return room.request != spec.request or not same
        return spec.name not in before.announced.get(spec.pod, (spec.name,))

    @rule(container=IDS, asked=AMOUNTS)
    def update(self, container: str, asked: Mapping[QosClass, dict[str, Any]]) -> None:
        """A container's resources change."""
        if (known := self.specs.get(container)) is None:
            return
        self.update_to(msgspec.structs.replace(known, **asked[known.qos]))

    @rule(container=IDS, spec=containers(), present=PRESENT)
    def update_oddly(self, container: str, spec: ContainerSpec, present: Pin) -> None:
        """A container is updated, which may be unknown."""
        if (known := self.specs.get(container)) is None:
            if spec.id not in self.specs:
                self.runtime[spec.id] = self.believed[spec.id] = present
                self.update_to(on(self.policy.machine, spec, present))
            return
        balloons = self.state.balloons
        self.update_to(known)
        assert self.state.balloons == balloons

    @rule(container=IDS)
    def stop(self, container: str) -> None:
        """A container stops, maybe one that never was."""
        assert self.decided(Started(container)).state is self.state
        decision = self.decided(Stopped(container))
        self.drop([container])
        self.take(decision)

    @rule(container=IDS, pod=PODS, whole=st.booleans())
    def vanish(self, container: str, pod: str, *, whole: bool) -> None:
        """A container vanishes; the updates are sent apart from the answer."""
        decision = self.decided(PodStopped(pod) if whole else Removed(container))
        gone = [key for key, one in self.specs.items() if one.pod == pod]
        self.lose(gone if whole else [container])
        self.take(decision)

    @rule(found=st.none() | OTHERS)
    def start_over(self, found: list[tuple[ContainerSpec, Pin]] | None) -> None:
        """The policy restarts with the last state, or without one."""
        there = self.present()
        settled = self.settled and not self.state.reserved_rooms
        self.forget_all()
        if found is not None:
            self.synchronize(on(self.policy.machine, one, pin) for one, pin in found)
            return
        self.synchronize(there.values())
        if settled and not (self.short or self.crowded):
            self.check_found_again(there)

    @rule(left=st.sets(IDS, max_size=2), new=OTHERS)
    def reconnect(self, left: set[str], new: list[tuple[ContainerSpec, Pin]]) -> None:
        """The plugin reconnects after containers ended and others started."""
        before, silent = self.state, self.settled and not (left or new or self.short)
        silent = silent and not self._came_twice()
        came = {one.id: on(self.policy.machine, one, pin) for one, pin in new}
        there = {k: one for k, one in self.present().items() if k not in left}
        self.synchronize((came | there).values())

        for key in there.keys() & before.memberships.keys():
            was = before.memberships[key]
            moved = was.fell_back and self.why[key] is Rule.NOW_FITS
            # Those that came without a word may need its CPUs.
            gives_way = self.why[key] in (Rule.FELL_BACK, Rule.MOVED)
            moved |= bool(new) and makes_way(self.specs[key]) and gives_way
            is_ = self.state.memberships[key]
            # CPUs that others came with may look like decisions after the checkpoint.
            # A balloon that shares idle ones is then found anew, by its own CPUs.
            if new and was.balloon and before.balloons[was.balloon].reach:
                is_ = msgspec.structs.replace(is_, balloon=was.balloon)
            assert moved or is_ == was
        assert not silent or self.updates_of_last == 0

    @rule(decisions=st.integers(0, 50))
    def die(self, decisions: int) -> None:
        """The daemon is killed, and its checkpoint may be older than what runs."""
        there, settled = self.present(), self.settled
        certain = settled and not (self.short or self.crowded)
        certain = certain and not self.state.reserved_rooms
        all_granted = self.kill(decisions)
        if certain:
            assert all_granted
            self.check_found_again(there)

    @rule(other=st.integers(0, 2) | documents())
    def change(self, other: int | Mapping[str, Any]) -> None:
        """CPUs and memory come and go, or the document changes."""
        if isinstance(other, int):
            machine = self.machines[other % len(self.machines)]
            conditions = msgspec.structs.replace(self.conditions, machine=machine)
        else:
            conditions = msgspec.structs.replace(self.conditions, spec=other)
        if not conditions.fits:
            return
        before, old = self.state, self.policy
        self.rebuild(conditions)
        machine, found = self.policy.machine, self.present().values()
        self.synchronize(on(machine, one, one.present) for one in found)
        self.check_stays(before, old)

    @rule(classes=CLASSES)
    def change_classes(self, classes: Mapping[str, str]) -> None:
        """A change of classes only moves no container."""
        before, silent = balloons_in(self.state), self.settled and not self.short
        silent = silent and not self._came_twice()
        spec = with_classes(self.conditions.spec, classes)
        self.rebuild(msgspec.structs.replace(self.conditions, spec=spec))
        self.synchronize(self.present().values())
        after = balloons_in(self.state)
        assert not silent or (self.updates_of_last, after) == (0, before)

    def check_stays(self, before: State, old: BalloonsPolicy) -> None:
        """Unaffected containers stay, on the same CPUs if none is added."""
        now = self.policy.settings
        asked = [one for kind in now.types for one in (*kind.cpus, *kind.near)]
        for key in self.specs.keys() - self.crowded:
            same = is_as_before(self.specs[key], old, self.policy)
            if same and (was := before.balloons[before.memberships[key].balloon]):
                names = {leaf.name for leaf, _ in leaves(was, before)}
                if not names & self.short and was.cpus.isdisjoint(CpuSet.union(asked)):
                    is_ = self.state.balloons.get(was.name, was)
                    assert self.state.memberships[key].balloon == was.name
                    there = _contents(is_, self.state)
                    assert there != _contents(was, before) or is_.cpus == was.cpus

    @invariant()
    def balloons_do_not_overlap(self) -> None:
        """CPUs of a balloon are in no other one, and no other container runs there."""
        check_disjoint(self.policy, self.state)
        check_balloons(self.policy, self.state)
        check_numbers(self.policy, self.state)

    @invariant()
    def all_containers_have_their_requests(self) -> None:
        """Each container has its type and size, unless it fell back or CPUs ran out."""
        short = short_leaves(self.policy, self.state)
        assert short <= self.short or not self.state.free
        self.short = frozenset(short)
        self.crowded &= self.specs.keys()
        for name in overloaded(self.policy, self.state):
            one = self.state.balloons[name]
            assert short & {leaf.name for leaf, _ in leaves(one, self.state)} or (
                self.crowded & set(one.members)
            )

    @invariant()
    def no_container_falls_back_needlessly(self) -> None:
        """A container that fell back would not be placed now, either."""
        context = self.policy.context
        for key, spec in self.specs.items():
            if self.state.memberships[key].fell_back:
                name = self.state.memberships[key].balloon
                left = vacate(name, self.state.without_member(key), context)
                with suppress(PolicyError):
                    assert not choose_balloon(search_for(spec, left, context)[0]), key

    @invariant()
    def all_containers_are_in_their_balloons(self) -> None:
        """In a balloon, of its type if it did not fall back, or left alone."""
        for key, spec in self.specs.items():
            name, alone = (
                self.state.memberships[key].balloon,
                is_preserved(spec, self.policy),
            )
            kind = type_of(spec, self.policy) or "default"
            assert (not name) == alone
            assert alone or self.state.balloons[name].cpus
            assert (
                alone or key in self.crowded or self.state.balloons[name].type == kind
            )

    @invariant()
    def no_container_runs_on_cpus_of_others(self) -> None:
        """Pins that were sent are in the balloon, or idle CPUs that it shares."""
        free, exact = idle(self.policy, self.state), reserved_exactly(self.conditions)
        for key, pin in self.runtime.items() if self.settled else ():
            name = self.state.memberships[key].balloon
            if name and self.policy.settings.pin_cpus:
                balloon = self.state.balloons[name]
                assert pin.cpus
                assert pin.cpus <= cpus_of(balloon, self.state) | free
                assert balloon.type != "reserved" or not exact or pin.cpus <= exact

    @invariant()
    def the_books_are_right(self) -> None:
        """The state has all containers and no others."""
        ledger = self.state.ledger
        assert {key: ledger.spec_of(key) for key in self.specs} == self.specs
        assert ledger.entries.keys() == self.specs.keys() == self.runtime.keys()
        assert self.state.memberships.keys() == self.specs.keys()
        check_memory(self.policy.machine, self.state.memory)

    @invariant()
    def the_runtime_has_the_pins_of_the_state(self) -> None:
        """The pins that were sent add up to the desired ones."""
        wanted = self.wanted()
        assert self.policy.pins(self.state) == wanted
        if self.settled:
            assert {k: wanted[k].over(pin) for k, pin in self.runtime.items()} == (
                self.runtime
            )


def balloons_in(state: State) -> dict[str, Balloon]:
    """Return the balloons; what is in them is in another order after an adoption."""
    return {
        name: msgspec.structs.replace(
            one, members=tuple(sorted(one.members)), rooms=tuple(sorted(one.rooms))
        )
        for name, one in state.balloons.items()
    }


def _contents(balloon: Balloon, state: State) -> set[tuple[str, str]]:
    """Return its containers with the types that they ask for, and its rooms."""
    members = {(key, state.memberships[key].kind) for key in balloon.members}
    return members | {(key, "") for key in balloon.rooms}


def _place(spec: ContainerSpec) -> tuple[str, str]:
    return spec.pod, spec.slot


TestBalloonsPolicyNeverErrs = BalloonsPolicyNeverErrs.TestCase
TestBalloonsPolicyNeverErrs.settings = steps(30)
