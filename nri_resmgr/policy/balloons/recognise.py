"""Balloons found again by the CPUs on which their containers run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from nri_resmgr.policy.balloons.choose_balloon import Search
from nri_resmgr.policy.balloons.choose_type import is_left_alone
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.pins import visible
from nri_resmgr.policy.balloons.place import (
    Placement,
    leave_alone,
    new_balloon,
    search_for,
)
from nri_resmgr.policy.balloons.resize import inflate
from nri_resmgr.policy.balloons.sizes import need
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import NO_CPUS, CpuSet, PolicyError

State = BalloonsState


class Presence(msgspec.Struct, frozen=True):
    """Where those run who are pinned.

    Attributes:
        occupied: CPUs that somebody runs on.
        contested: CPUs that containers of several balloons run on.
    """

    occupied: CpuSet
    contested: CpuSet

    @classmethod
    def of(
        cls, runs: Iterable[tuple[ContainerSpec, CpuSet]], ground: Ground
    ) -> Presence:
        """Look at where containers run that are not left alone."""
        settings = ground.settings
        places = {
            place
            for spec, place in runs
            if not settings.available <= place
            if not is_left_alone(spec, settings)
        }
        # Who hides threads is in the balloon of those who see them.
        seen = ((one, ground.one_per_core(one)) for one in places)
        views = {view for one, view in seen if view != one}
        return cls(CpuSet.union(places), _twice(places - views))


def doubt(spec: ContainerSpec, ground: Ground) -> tuple[bool, bool, int]:
    """Tell whose present CPUs say least: who shares idle ones, then who hides some."""
    if is_left_alone(spec, ground.settings):
        return False, False, 0
    try:
        search, _ = search_for(spec, State.empty(ground.memory, CpuSet()), ground)
    except PolicyError:
        return True, True, len(spec.present.cpus)
    shares = search.kind.share_idle is not None
    return shares, search.seat.hidden, len(spec.present.cpus)


def recognise(
    spec: ContainerSpec, state: State, ground: Ground, presence: Presence
) -> Placement | None:
    """Put a container into a balloon inside of the CPUs that it runs on.

    Containers of one balloon run on the same CPUs, but for threads that some do not
    see: so it joins one whose containers do, or else makes one there. CPUs that
    containers of others run on, too, are likely idle ones: they are taken last.

    Args:
        spec: The container, which runs.
        state: All balloons without it.
        ground: The machine and the settings.
        presence: Where all run.

    Returns:
        None where its CPUs tell nothing, or cannot be those of a balloon of its type.
    """
    if is_left_alone(spec, ground.settings):
        return leave_alone(spec, state)
    try:
        search, decided = search_for(spec, state, ground)
    except PolicyError:
        return None
    present = spec.present.cpus & ground.settings.available
    if not present or present == ground.settings.available:
        return None
    unseen = NO_CPUS
    if search.seat.hidden:
        unseen = _unseen(present, ground) - presence.occupied
    for made, name in _candidates(search, present | unseen):
        known = present | _known(made.balloons[name], made)
        state = made.sit(spec.id, msgspec.structs.replace(search.seat, balloon=name))
        for inside in (known - presence.contested, known, known | unseen):
            state = inflate(name, state, ground, inside=inside, as_far=True)
        if _suffices(name, state, ground):
            return Placement(state=state, rule=Rule.KEPT, decided=decided)
    return None


def _candidates(search: Search, inside: CpuSet) -> Iterator[tuple[State, str]]:
    """Go through balloons that it may be in: as its containers say, as its CPUs do."""
    here = search.spec.present.cpus
    near = here | _unseen(here, search.ground) if search.seat.hidden else here
    mine = [
        one
        for one in search.state.of_type(search.kind.name)
        if one.cpus.bits & near.bits or not one.cpus
    ]
    agreeing = [one for one in mine if _agrees(one, search)]
    others = [one for one in mine if one.cpus <= inside and one not in agreeing]
    for one in (*agreeing, *others):
        yield search.state, one.name
    if new := new_balloon(search):
        yield new


def _agrees(balloon: Balloon, search: Search) -> bool:
    """Tell whether all in a balloon run where a container does, seen or not."""
    state, ground = search.state, search.ground
    told, hidden = search.state.ledger.last_sent_to, search.seat.hidden
    here = search.spec.present.cpus
    for key in balloon.members:
        there, seat = told(key).cpus, state.seats[key]
        if seat.hidden == hidden:
            same = there == here
        elif hidden:
            same = visible(there, search.seat, ground) == here
        else:
            same = visible(here, seat, ground) == there
        if not same:
            return False
    return bool(balloon.members)


def _known(balloon: Balloon, state: State) -> CpuSet:
    """Return the CPUs that those run on who see all of the balloon."""
    told, seats = state.ledger.last_sent_to, state.seats
    seeing = (told(key).cpus for key in balloon.members if not seats[key].hidden)
    return CpuSet.union(seeing)


def _twice(places: Iterable[CpuSet]) -> CpuSet:
    once = twice = 0
    for place in places:
        twice |= once & place.bits
        once |= place.bits
    return CpuSet(twice)


def _unseen(cpus: CpuSet, ground: Ground) -> CpuSet:
    """Return the CPUs that a container may not see because of those it does.

    It sees the lowest thread of each core that its balloon has: lower ones are not
    there.
    """
    online = cpus & ground.machine.online  # the runtime may tell of others
    cores = {ground.machine.core_of(cpu).cpus for cpu in online}
    lower = CpuSet.union(
        CpuSet((1 << (core & online).first) - 1) & core for core in cores
    )
    return (CpuSet.union(cores) & ground.settings.available) - lower


def _suffices(name: str, state: State, ground: Ground) -> bool:
    balloon = state.balloons[name]
    needs = need(balloon, state, ground)
    return all(
        len(leaf.cpus) >= max(needs[leaf.name], 1)
        and 1000 * len(leaf.cpus) * shares >= balloon.load
        for leaf, shares in state.leaves(balloon)
    )
