"""Balloons reconstructed from the CPUs on which their containers run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.balloons.choose_balloon import Search
from nri_resmgr.policy.balloons.choose_type import is_preserved
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import inflate
from nri_resmgr.policy.balloons.place import (
    BalloonPlacement,
    new_balloon,
    preserve,
    search_for,
    search_or_default,
)
from nri_resmgr.policy.balloons.settings import BalloonType
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, PolicyError


class Occupancy(msgspec.Struct, frozen=True):
    """CPUs that pinned containers run on, and what that says of balloons.

    Attributes:
        occupied: Those of all of them.
        contested: Those of several balloons.
        own: Those that one balloon is known to have, where types share idle CPUs:
            isolated ones, which none shares, and those that a container which shares
            idle CPUs there does not run on. Containers of no other balloon do.
    """

    occupied: CpuSet
    contested: CpuSet
    own: CpuSet

    @classmethod
    def of(
        cls, runs: Iterable[tuple[ContainerSpec, CpuSet]], context: Context
    ) -> Occupancy:
        """Collect the CPUs of containers that are pinned to some of them."""
        settings = context.settings
        pinned = [
            (spec, place)
            for spec, place in runs
            if not settings.available <= place
            if not is_preserved(spec, settings)
        ]
        places = {place for _, place in pinned}
        # A container with hidden threads is in a balloon of containers that see them.
        seen = ((one, context.one_per_core(one)) for one in places)
        views = {view for one, view in seen if view != one}
        occupied, contested = CpuSet.union(places), _twice(places - views)
        if all(kind.share_idle is None for kind in settings.types):
            return cls(occupied, contested, NO_CPUS)
        lacked = CpuSet.union(_lacked(spec, place, context) for spec, place in pinned)
        own = lacked | (occupied & context.machine.isolated)
        return cls(occupied, contested, own - contested)


def ambiguity(spec: ContainerSpec, context: Context) -> tuple[bool, bool, int]:
    """Return a sort key: last are containers whose CPUs say least about their balloon.

    CPUs of types that share idle ones say least, then those with hidden threads.
    """
    if is_preserved(spec, context.settings):
        return False, False, 0
    search = _search_of(spec, context)
    if search is None:
        return True, True, len(spec.present.cpus)
    shares = search.kind.share_idle is not None
    return shares, search.membership.hidden, len(spec.present.cpus)


def shares_idle(spec: ContainerSpec, context: Context) -> bool:
    """Return whether a container may run on idle CPUs of no balloon.

    Also where its type does not exist any more.
    """
    search = _search_of(spec, context)
    return search is None or search.kind.share_idle is not None


def _search_of(spec: ContainerSpec, context: Context) -> Search | None:
    """Return what decides on a container's type, unless it asks for none that is."""
    try:
        search, _ = search_for(spec, State.empty(context.memory, NO_CPUS), context)
    except PolicyError:
        return None
    return search


def recognise(
    spec: ContainerSpec, state: State, context: Context, occupancy: Occupancy
) -> BalloonPlacement | None:
    """Put a running container into a balloon of its type on its present CPUs, if any.

    Containers of one balloon run on the same CPUs, except for hidden threads. So the
    container joins a balloon whose containers run there, or a new one is created
    there. CPUs with containers of other balloons are probably shared idle CPUs and
    are taken last.
    """
    if is_preserved(spec, context.settings):
        return preserve(spec, state)
    why_not = ""
    try:
        search, decided = search_for(spec, state, context)
    except PolicyError as error:  # no such type any more
        search, decided = search_or_default(spec, state, context), ""
        why_not = str(error)
    present = spec.present.cpus & context.settings.available
    # On all available CPUs it was not pinned, so these say nothing.
    if not present or present == context.settings.available:
        return None
    hidden = NO_CPUS
    if search.membership.hidden:
        hidden = _hidden_threads(present, context) - occupancy.occupied
    for made, name in _candidates(search, present | hidden, present & occupancy.own):
        known = present | _known(made.balloons[name], made)
        membership = replace(search.membership, balloon=name, fell_back=bool(why_not))
        state = made.with_member(spec.id, membership)
        own, each, alone = _likeliest(known, search.kind, context, occupancy)
        for inside in (own, each, alone, known, known | hidden):
            state = inflate(name, state, context, inside=inside, partial=True)
        if _suffices(name, state):
            return BalloonPlacement(state, Rule.KEPT, decided, why_not)
    return None


def likely_own(
    name: str, state: State, context: Context, occupancy: Occupancy
) -> CpuSet:
    """Return CPUs that a balloon has, as far as those of its containers say."""
    balloon = state.balloons[name]
    known = _known(balloon, state) & context.settings.available
    kind = context.type_of(balloon)
    own, each, _ = _likeliest(known, kind, context, occupancy)
    return own | each


def run_on_alone(
    name: str, state: State, context: Context, occupancy: Occupancy
) -> CpuSet:
    """Return CPUs on which the containers of a balloon run, and those of no other."""
    known = _known(state.balloons[name], state) & context.settings.available
    if known == context.settings.available:
        return NO_CPUS  # they are not pinned
    return known - occupancy.contested


def _candidates(
    search: Search, inside: CpuSet, own: CpuSet
) -> Iterator[tuple[State, str]]:
    """Yield balloons that it may be in: first by their containers, then by CPUs.

    Not those whose containers lack CPUs that its balloon has as its *own*.
    """
    here = search.spec.present.cpus
    near = here
    if search.membership.hidden:
        near |= _hidden_threads(here, search.context)
    mine = [
        one
        for one in search.state.of_type(search.kind.name)
        if one.cpus.bits & near.bits or not one.cpus
    ]
    agreeing = [one for one in mine if _agrees(one, search)]
    others = [
        one
        for one in mine
        if one.cpus <= inside and one not in agreeing
        if not one.members or own <= _known(one, search.state)
    ]
    for one in (*agreeing, *others):
        yield search.state, one.name
    if new := new_balloon(search):
        yield new


def _agrees(balloon: Balloon, search: Search) -> bool:
    """Return whether all containers of a balloon run on the CPUs of this one."""
    state, context = search.state, search.context
    last_sent, hidden = state.ledger.last_sent_to, search.membership.hidden
    here = search.spec.present.cpus
    for key in balloon.members:
        there, membership = last_sent(key).cpus, state.memberships[key]
        if membership.hidden == hidden:
            same = there == here
        elif hidden:
            same = context.visible(there, search.membership) == here
        else:
            same = context.visible(here, membership) == there
        if not same:
            return False
    return bool(balloon.members)


def _known(balloon: Balloon, state: State) -> CpuSet:
    """Return the CPUs of those containers from which no threads are hidden."""
    last_sent, memberships = state.ledger.last_sent_to, state.memberships
    return CpuSet.union(
        last_sent(key).cpus for key in balloon.members if not memberships[key].hidden
    )


def _likeliest(
    known: CpuSet, kind: BalloonType, context: Context, occupancy: Occupancy
) -> tuple[CpuSet, CpuSet, CpuSet]:
    """Return which CPUs of its containers a balloon has: surely, likely, perhaps."""
    own, alone = known & occupancy.own, known - occupancy.contested
    return own, _one_of_each(alone, own, kind, context), alone


def _one_of_each(
    cpus: CpuSet, own: CpuSet, kind: BalloonType, context: Context
) -> CpuSet:
    """Return one CPU of each element in which a type shares idle ones and has no *own*.

    The balloon has some in each of these, or it would not share the others there.
    """
    if kind.share_idle is None:
        return NO_CPUS
    around = context.around(kind.share_idle, own)
    inside = (one & cpus for one in context.elements(kind.share_idle))
    return CpuSet.from_iterable(one.first for one in inside if one) - around


def _lacked(spec: ContainerSpec, place: CpuSet, context: Context) -> CpuSet:
    """Return where a container would run as well if no balloon had these CPUs.

    Only where its balloon's own CPUs are known to be of one level: a composite one
    shares at several.
    """
    search = _search_of(spec, context)
    if search is None or search.membership.hidden or search.kind.components:
        return NO_CPUS
    return (context.reach_of(search.kind, place) & context.settings.available) - place


def _twice(places: Iterable[CpuSet]) -> CpuSet:
    once = twice = 0
    for place in places:
        twice |= once & place.bits
        once |= place.bits
    return CpuSet(twice)


def _hidden_threads(cpus: CpuSet, context: Context) -> CpuSet:
    """Return the threads that may be hidden from a container with these CPUs.

    The visible thread is the lowest of each core that the balloon has, so only higher
    threads can be hidden.
    """
    online = cpus & context.machine.online  # the runtime may report others
    cores = {context.machine.core_of(cpu).cpus for cpu in online}
    lower = CpuSet.union(
        CpuSet((1 << (core & online).first) - 1) & core for core in cores
    )
    return (CpuSet.union(cores) & context.settings.available) - lower


def _suffices(name: str, state: State) -> bool:
    """Return whether a balloon has enough for its containers.

    It may have less than the minimum of its type, as parts of the machine went.
    """
    balloon = state.balloons[name]
    return all(
        leaf.cpus and ONE_CPU * len(leaf.cpus) * shares >= balloon.load
        for leaf, shares in state.leaves(balloon)
    )
