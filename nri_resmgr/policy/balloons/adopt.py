"""Balloons for running containers: their former ones, those they run in, or new ones.

`adopt` decides a Synchronize: of a new process, of a new session, and after a change of
the configuration or of the hardware. `restore` has balloons of the former state,
`recognise` makes balloons of the CPUs that containers run on. docs/balloons.md, "What a
restart keeps", has the rules for users.

What it guarantees:

* No running container is refused. Without a checkpoint each keeps its CPUs where no
  type shares idle ones and no balloon lacked any.
* A balloon of the checkpoint comes back with its name and CPUs if what runs does not
  contradict it. What a runtime cannot know (reserved rooms, which containers fell back,
  names and empty balloons) comes from there.
* Until all containers have been looked at, CPUs that they run on go to no balloon but
  theirs, unless the configuration names them for one.

How: in this order, each step for all containers before the next one begins:

1. balloons with CPUs by number, and the former balloons (`restore`), without the part
   of the checkpoint that is older than what runs (`recent_part`), and without CPUs that
   they do not need any more (`trimmed`), unless containers that the checkpoint lacks
   run on just these (`_occupied_later`): then they shrink before the third step. What
   they lack they get where only their own containers run (`run_on_alone`);
2. balloons by present CPUs (`recognise`), those first whose CPUs say most about their
   balloon (`ambiguity`), and containers that give way last: they may have fallen back
   onto CPUs of others;
3. empty balloons, missing CPUs and minimum numbers (`_completed`), of CPUs that no
   container runs on;
4. a place as for a new container, oldest first, or in a balloon without room.

Where types share idle CPUs, containers of several balloons run on the same ones. A CPU
is a balloon's own if one that shares idle CPUs there does not run on it (`Occupancy`).

What was rejected:

* To restore the checkpoint as it is. It is written after the reply, so after a crash it
  lacks the last decisions.
* Empty balloons with the former ones. After an idle time they had CPUs on which
  containers run.
* To look for each container which CPUs those of several balloons run on. That took
  longer than the rest of a Synchronize; `Occupancy` has it for all.
* The default type first for a container without room, wherever it ran. There it took
  CPUs from those that have what they asked for.

What it costs: for each container that no former balloon has, a look at the balloons of
its type. A whole Synchronize of 500 containers takes 209 ms (docs/benchmarks.md,
"Balloons policy").

Checked by: tests/laws/test_balloons_restart.py (no checkpoint);
tests/laws/test_old_checkpoints.py (checkpoints of any age, in random histories);
tests/laws/test_balloons_policy.py (sessions end and begin among other events).

An example, without a checkpoint: `a` and `b` run on the same CPUs, so they were in one
balloon, and `c` was in another one. `d` was created while no daemon ran, and may run on
all CPUs. It is placed last, beside `c`, whose balloon grows by a CPU that no other
container runs on:

>>> from nri_resmgr.policy.balloons.policy import BalloonsPolicy
>>> from nri_resmgr.policy.balloons.settings import BalloonsSettings, BalloonType
>>> from nri_resmgr.policy.events import Pin, Synchronized
>>> from nri_resmgr.topology.synthetic import parse_spec
>>> from nri_resmgr.values import MilliCpus

>>> machine = parse_spec("1s8c1t")
>>> types = [BalloonType(name="web", namespaces=("web",), max_cpus=2)]
>>> types += [BalloonType(name=name, max_cpus=1) for name in (RESERVED, DEFAULT)]
>>> available = machine.online - CpuSet.of(0)
>>> settings = BalloonsSettings(available=available, types=tuple(types))
>>> policy = BalloonsPolicy(machine, settings)
>>> def running(name: str, milli: int, cpus: str) -> ContainerSpec:
...     runs = Pin(CpuSet.parse(cpus))
...     request = MilliCpus(milli)
...     return ContainerSpec(
...         name, name, namespace="web", request=request, present=runs
...     )

>>> rows = ("a", 900, "2-3"), ("b", 900, "2-3"), ("c", 900, "5"), ("d", 900, "0-7")
>>> specs = tuple(running(*row) for row in rows)
>>> found = policy.decide(policy.start(), Synchronized(specs))
>>> for one in found.state.of_type("web"):
...     print(one.name, one.cpus, *one.members)
web[0] 1,5 c d
web[1] 2-3 a b
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from msgspec.structs import replace

from nri_resmgr.policy.balloons.adopt_memory import with_memory
from nri_resmgr.policy.balloons.choose_balloon import Search
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import (
    create_given,
    create_minimum,
    grow,
    inflate,
)
from nri_resmgr.policy.balloons.make_room import gives_way
from nri_resmgr.policy.balloons.place import (
    BalloonPlacement,
    force_into,
    new_balloon,
    place,
    search_or_default,
)
from nri_resmgr.policy.balloons.recognise import (
    Occupancy,
    ambiguity,
    likely_own,
    recognise,
    run_on_alone,
    shares_idle,
)
from nri_resmgr.policy.balloons.restore import (
    in_standard_order,
    recent_part,
    restore,
    restore_empty,
    trimmed,
)
from nri_resmgr.policy.balloons.settings import DEFAULT, RESERVED
from nri_resmgr.policy.balloons.state import Balloon, ReservedRoom, Slot
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import NO_CPUS, CpuSet, PolicyError


def adopt(
    specs: Sequence[ContainerSpec],
    rooms: Mapping[Slot, ReservedRoom],
    old: State,
    context: Context,
) -> tuple[State, dict[str, BalloonPlacement]]:
    """Place running containers, oldest first; never refuses, as they run in any case.

    Containers with a known balloon come first, then those whose present CPUs may be
    those of a balloon, then the others, each group in the given order. The *old* state
    may be of another machine or other settings. Reserved *rooms* that do not fit any
    more are left out.
    """
    state = State.empty(context.memory, context.settings.available)
    # Configured and reserved CPUs come first: no other balloon may take them.
    state = create_given(state, context, partial=True)
    # All of them before any is placed, as strategies look at pods and namespaces.
    for spec in specs:
        state = state.put(spec, spec.present)
    occupancy = Occupancy.of(((one, one.present.cpus) for one in specs), context)
    occupied = _occupied(specs, context)
    former = in_standard_order(old)
    old = recent_part(former, specs, occupancy, context)
    rooms = {slot: one for slot, one in rooms.items() if one.balloon in old.balloons}
    there = {one.id: one for one in specs}
    state = restore(there, rooms, old, state, context)
    whole = _occupied_later(specs, old, state, context)
    shrunk = {
        name for name, one in old.balloons.items() if _lost_some(one, former, there)
    }
    restored = [
        name
        for name, one in old.balloons.items()
        if name in state.balloons and not (one.within or name in whole)
    ]
    state = _trimmed(restored, shrunk, state, context, occupancy)
    state = _grown_where_they_run(state, context, occupancy)
    # Where all containers are known, none runs on free CPUs. Else balloons get these
    # when all have been found.
    if all(one.id in old.ledger for one in specs):
        state = _completed(old, state, occupied, context)
    placed = {
        key: BalloonPlacement(state, _rule_of(membership.balloon, old, state))
        for key, membership in state.memberships.items()
    }
    # Those that fell back run on CPUs of others, which come first.
    for spec in sorted(
        _unplaced(specs, placed),
        key=lambda one: (gives_way(one), ambiguity(one, context)),
    ):
        found = recognise(spec, state, context, occupancy)
        if found and _leaves_reserved(spec, found.state, state, context):
            placed[spec.id], state = found, found.state
    state = _trimmed(whole, shrunk, state, context, occupancy)
    state = _completed(old, state, occupied, context)
    with_minimum = partial(create_minimum, context=context, partial=True)
    state = _beside(occupied, state, with_minimum)
    for spec in _unplaced(specs, placed):
        found = _place_anywhere(spec, state, context)
        placed |= {spec.id: found, **found.displaced}
        state = found.state
    return with_memory(specs, old, state, context), placed


def adopt_one(spec: ContainerSpec, state: State, context: Context) -> BalloonPlacement:
    """Place one more running container, which the ledger has already; never refuses."""
    entries = state.ledger.entries.values()
    occupancy = Occupancy.of(
        ((one.spec, one.last_sent.cpus) for one in entries), context
    )
    found = recognise(spec, state, context, occupancy)
    found = found or _place_anywhere(spec, state, context)
    return replace(found, state=with_memory((spec,), state, found.state, context))


def _lost_some(
    balloon: Balloon, former: State, there: Mapping[str, ContainerSpec]
) -> bool:
    """Return whether containers have gone since, and nothing was decided on the others.

    Then it shrinks now, as it would have at once. If it has shrunk before, the CPUs of
    the others say which are left.
    """
    known = former.balloons[balloon.name].members
    if known != balloon.members or all(key in there for key in known):
        return False
    asked = former.memberships
    return all(
        there[key].request == asked[key].request for key in known if key in there
    )


def _trimmed(
    names: Iterable[str],
    shrunk: AbstractSet[str],
    state: State,
    context: Context,
    occupancy: Occupancy,
) -> State:
    """Release CPUs that balloons do not need, those that are likely their own last.

    Not those of balloons that have *shrunk*: their containers do not say which.
    """
    for name in names:
        own = NO_CPUS
        if state.balloons[name].reach and name not in shrunk:
            own = likely_own(name, state, context, occupancy)
        state = trimmed(name, state, context, own)
    return state


def _grown_where_they_run(
    state: State, context: Context, occupancy: Occupancy
) -> State:
    """Give balloons what they lack of CPUs on which only their own containers run.

    They may have these by a decision that the checkpoint lacks.
    """
    for name in state.balloons:
        alone = run_on_alone(name, state, context, occupancy)
        state = inflate(name, state, context, inside=alone, partial=True)
    return state


def _occupied_later(
    specs: Sequence[ContainerSpec], old: State, state: State, context: Context
) -> list[str]:
    """Return the balloons on all CPUs of which containers run that came later.

    Those that the checkpoint lacks and that run on some of its CPUs are on just these:
    the balloon had them when they came. It shrinks when they have been found, so that
    none gets a part of it for another balloon. Where it shares idle CPUs, some of these
    may have been idle, unless one of the containers shares none.
    """
    available = context.settings.available
    later = [
        one
        for one in specs
        if one.id not in old.ledger and not available <= one.present.cpus
    ]

    def had_them(balloon: Balloon) -> bool:
        here = [one for one in later if not one.present.cpus.isdisjoint(balloon.cpus)]
        on_just_these = all(one.present.cpus == balloon.cpus for one in here)
        if not (here and on_just_these):
            return False
        return not (balloon.reach and all(shares_idle(one, context) for one in here))

    return [
        name
        for name in old.balloons
        if (found := state.balloons.get(name)) and not found.within and had_them(found)
    ]


def _completed(old: State, state: State, occupied: CpuSet, context: Context) -> State:
    """Restore empty balloons, and give those that have containers what they lack.

    In this order: those that lost CPUs do not take those of the empty ones.
    """
    found = tuple(state.balloons)
    with_empty = partial(restore_empty, old, context=context)
    return grow(found, _beside(occupied, state, with_empty), context)


def _occupied(specs: Sequence[ContainerSpec], context: Context) -> CpuSet:
    """Return the CPUs of pinned containers, but for those that give way to balloons."""
    available = context.settings.available
    return CpuSet.union(
        one.present.cpus
        for one in specs
        if not (available <= one.present.cpus or gives_way(one))
    )


def _beside(occupied: CpuSet, state: State, change: Callable[[State], State]) -> State:
    """Change a state, but leave CPUs that containers run on to these.

    An empty balloon can be elsewhere as well, and a checkpoint can be older.
    """
    kept = state.free & occupied
    changed = change(replace(state, free=state.free - kept))
    return replace(changed, free=changed.free | kept)


def _rule_of(balloon: str, old: State, state: State) -> Rule:
    before, after = old.balloons[balloon].cpus, state.balloons[balloon].cpus
    return Rule.MOVED if before.isdisjoint(after) else Rule.KEPT


def _leaves_reserved(
    spec: ContainerSpec, state: State, before: State, context: Context
) -> bool:
    """Return whether a container that gives way leaves enough CPUs to reserve.

    Reserved CPUs of which only the amount is configured are in no balloon yet, and it
    may have fallen back to these.
    """
    if not gives_way(spec) or state.free == before.free:
        return True
    kind = context.settings.by_name[RESERVED]
    missing = kind.min_balloons - state.count_whole(RESERVED)
    return missing * kind.min_cpus <= len(state.free)


def _unplaced(
    specs: Sequence[ContainerSpec], placed: Mapping[str, BalloonPlacement]
) -> list[ContainerSpec]:
    return [one for one in specs if one.id not in placed]


def _place_anywhere(
    spec: ContainerSpec, state: State, context: Context
) -> BalloonPlacement:
    """Place a running container, in a balloon without room for it if need be.

    First in one on whose CPUs it runs: it may have fallen back to these, and in another
    one it would take CPUs from those that have what they asked for.
    """
    try:
        return place(spec, state, context)
    except PolicyError as error:
        why = str(error)
    search, settings = search_or_default(spec, state, context), context.settings
    others = (one.name for one in settings.types if one.name != RESERVED)
    here = _types_on(spec.present.cpus, state, context)
    kinds = dict.fromkeys((*here, DEFAULT, search.kind.name, *others, RESERVED))
    # One of them succeeds: `BalloonsSettings` rejects types without any CPU.
    found = next(filter(None, (_force_into_type(kind, search) for kind in kinds)))
    return BalloonPlacement(found, Rule.FELL_BACK, detail=why)


def _types_on(present: CpuSet, state: State, context: Context) -> list[str]:
    """Return the types of balloons all of whose CPUs a pinned container runs on."""
    if context.settings.available <= present:
        return []
    whole = (one for one in state.balloons.values() if not one.within)
    return [one.type for one in whole if one.cpus and one.cpus <= present]


def _force_into_type(kind: str, search: Search) -> State | None:
    """Put a container into any balloon of a type, if need be into a new one."""
    if found := force_into(kind, search):
        return found
    wanted = replace(search, kind=search.context.settings.by_name[kind])
    made = new_balloon(wanted)
    return force_into(kind, replace(wanted, state=made[0])) if made else None
