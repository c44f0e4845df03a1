"""Balloons created, resized and removed; how many CPUs they need and can have.

docs/balloons.md, "Size" and "Choice of CPUs", has the rules for users. `choose_balloon`
asks here whether a balloon has room, `place` has it grow, and `pick` chooses the CPUs.

What it guarantees:

* A balloon has as many CPUs as its containers request together, rounded up to whole
  ones: at least one if it has containers, and within the limits of its type. It has
  fewer only where CPUs ran out, until others leave some.
* No CPU is in two balloons. Free CPUs, those of no balloon, can be shared as idle ones,
  and are given to a balloon that needs them at any time.
* A container never starts in a balloon that cannot hold it: whether it fits is asked
  before the balloon grows. Only a fall-back breaks this, and it is marked as one.

How: the load of a balloon is a sum of requests, and its size a function of the load
(`needed_cpus`). `inflate` and `deflate` bring the CPUs of each leaf to that size, so no
order of events can leave a balloon too large. `capacity` is the size that it could
have: if a request fits into that, the CPUs are there.

A composite balloon has no CPUs of its own. Each of its *n* components carries the
*n*-th part of the load, rounded up, so the smallest of them limits the whole. As they
grow out of the same free CPUs, room for each of them is not yet room for all:
`capacity` steps down from what the smallest could have until the free CPUs suffice for
all together.

What was rejected:

* To let a balloon grow only when its own containers change. One that had lost CPUs,
  such as to hotplug, stayed too small beside free ones. Now each decision that frees
  CPUs ends with `grow`, after containers that fell back.
* To have all balloons grow there. Nearly all of them lack nothing; `lacking` asks
  first. The sum of the CPUs of a composite balloon does not say whether its components
  have enough: one can lack what another has in excess.
* To ask every balloon of a type whether it has room. With 443 containers in 213
  balloons a Synchronize was decided in 285 ms; 125 when only those were asked that have
  more left than the best so far (`choose_balloon`), and the memory's layout was made
  once.

What it costs: a look at each balloon of the type, and one call of the CPU allocator for
each leaf that grows (one for each CPU with a load class that
`overloadsLevelInBalloon`). A CreateContainer takes 0.53 ms among 10 containers and some
0.8 among 500 (docs/benchmarks.md, "Balloons policy").

Checked by: tests/laws/test_balloons_policy.py, where tests/laws/balloons_recount.py
counts sizes, loads and free CPUs from the containers alone after any events;
tests/laws/test_balloons_restart.py; tests/laws/test_order_of_arrival.py (containers
without a request take no CPU from those with one).

An example: eight CPUs, of which CPU 0 is reserved, and a type of at most three CPUs.
The first balloon grows with its load of 0.7, 1.4 and 2.9 CPUs. For 0.5 more it would
need a fourth CPU, so a second balloon is made. It shrinks when a container leaves:

>>> from nri_resmgr.policy.balloons.policy import BalloonsPolicy
>>> from nri_resmgr.policy.balloons.settings import DEFAULT, BalloonsSettings
>>> from nri_resmgr.policy.events import ContainerSpec, Created, Stopped
>>> from nri_resmgr.topology.synthetic import parse_spec
>>> from nri_resmgr.values import MilliCpus

>>> machine = parse_spec("1s8c1t")
>>> types = [BalloonType(name="web", namespaces=("web",), max_cpus=3)]
>>> types += [BalloonType(name=name, max_cpus=1) for name in (RESERVED, DEFAULT)]
>>> available = machine.online - CpuSet.of(0)
>>> settings = BalloonsSettings(available=available, types=tuple(types))
>>> policy = BalloonsPolicy(machine, settings)
>>> state = policy.start()
>>> def show() -> None:
...     web = state.of_type("web")
...     print(*(f"{one.name}: {one.load}m on {one.cpus}" for one in web))

>>> for name, milli in {"a": 700, "b": 700, "c": 1500, "d": 500}.items():
...     spec = ContainerSpec(name, name, namespace="web", request=MilliCpus(milli))
...     state = policy.decide(state, Created(spec)).state
...     show()
web[0]: 700m on 1
web[0]: 1400m on 1-2
web[0]: 2900m on 1-3
web[0]: 2900m on 1-3 web[1]: 500m on 4
>>> state = policy.decide(state, Stopped("c")).state
>>> show()
web[0]: 1400m on 1-2 web[1]: 500m on 4
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.errors import BalloonShort
from nri_resmgr.policy.balloons.pick import give_back, take
from nri_resmgr.policy.balloons.settings import RESERVED, BalloonType
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet

# Types with the strictest preference choose their CPUs first.
_ORDER: Final = tuple(CpuPriority)


def needed_cpus(balloon: Balloon, state: State, context: Context) -> dict[str, int]:
    """Return how many CPUs each leaf of a balloon should have, by name.

    That is enough for the requests of its containers, at least one if it has
    containers, and within the minimum and maximum of its type.
    """
    kind, used = context.type_of(balloon), balloon.is_used
    if not balloon.parts:
        return {balloon.name: _need(balloon, context)}
    if kind.max_cpus == 0:  # a limit of the whole, however few containers there are
        return {leaf.name: 0 for leaf, _ in state.leaves(balloon)}
    # Components carry equal shares of the load, each rounded up to whole CPUs.
    milli = _clamped(balloon.load, kind)
    return {
        leaf.name: _leaf_need(
            -(-milli // share), context.type_of(leaf), leaf, used=used
        )
        for leaf, share in state.leaves(balloon)
    }


def has_room(balloon: Balloon, request: int, state: State) -> bool:
    """Return whether a request fits without another CPU; one of 0 always does."""
    # Without a CPU not even a container that requests nothing can run.
    for leaf, _ in state.leaves(balloon):
        if not leaf.cpus:
            return False
    return not request or free_capacity(balloon, state) >= request


def free_capacity(balloon: Balloon, state: State) -> int:
    """Return the unrequested part of a balloon's CPUs, in thousandths of a CPU."""
    if not balloon.parts:
        return ONE_CPU * balloon.cpus.bits.bit_count() - balloon.load
    sizes = (len(leaf.cpus) * share for leaf, share in state.leaves(balloon))
    return ONE_CPU * min(sizes) - balloon.load


def capacity(balloon: Balloon, state: State, context: Context) -> int:
    """Return a balloon's capacity with all free CPUs, in thousandths of a CPU."""
    kind, free = context.type_of(balloon), state.free.bits.bit_count()
    if not balloon.parts:
        return ONE_CPU * most_cpus(balloon, kind, free)
    leaves = [
        (leaf, share, most_cpus(leaf, context.type_of(leaf), free))
        for leaf, share in state.leaves(balloon)
    ]
    most = min(ONE_CPU * size * share for _, share, size in leaves)
    # Growing components share the free CPUs: step down until these suffice for all.
    while most > 0 and _missing(most, leaves) > free:
        most -= ONE_CPU
    # Without the minimum, which says nothing about what can be had.
    return _clamped(most, kind, low=False)


def most_cpus(balloon: Balloon, kind: BalloonType, free: int) -> int:
    """Return the size that a balloon without parts can reach."""
    if kind.cpus:
        return len(kind.cpus[balloon.index])
    most = balloon.cpus.bits.bit_count() + free
    return most if kind.max_cpus is None else min(kind.max_cpus, most)


def create(
    kind: BalloonType, state: State, context: Context, within: str = ""
) -> tuple[State, str]:
    """Create a balloon, without CPUs unless its type lists them; also return its name.

    The maximum number of its type is not checked. It may be *within* a composite one.
    """
    used = {one.index for one in state.balloons.values() if one.type == kind.name}
    # The lowest, as CPUs and homes of a type are configured by this number.
    index = next(number for number in range(len(used) + 1) if number not in used)
    balloon = Balloon(type=kind.name, index=index, within=within)
    name = balloon.name
    if kind.cpus:
        cpus = kind.cpus[balloon.index]
        balloon = replace(balloon, cpus=cpus, reach=context.reach_of(kind, cpus))
        return state.with_balloons((balloon,), state.free - balloon.cpus), name
    state = state.with_balloons((balloon,))
    parts = []
    for part in _components(kind, state, context):
        state, made = create(part, state, context, name)
        parts.append(made)
    if parts:
        state = state.with_balloons((replace(balloon, parts=tuple(parts)),))
    return state, name


def inflate(
    name: str,
    state: State,
    context: Context,
    *,
    inside: CpuSet | None = None,
    partial: bool = False,
) -> State:
    """Add CPUs to a balloon, no component, up to its need; it gives none back.

    Only CPUs *inside* of some are taken, if given. A *partial* call takes fewer where
    there are not enough.

    Raises:
        BalloonShort: There are too few free CPUs.
    """
    balloon = state.balloons[name]
    for key, wanted in needed_cpus(balloon, state, context).items():
        leaf = state.balloons[key]
        count = wanted - leaf.cpus.bits.bit_count()
        if count <= 0:
            continue
        free = state.free if inside is None else state.free & inside
        if partial:
            count = min(count, len(free))
        if count > 0:
            more = take(count, leaf, free, state, context)
            state = with_cpus(leaf, leaf.cpus | more, state, context)
    return state


def inflate_near(
    name: str, state: State, context: Context, places: Iterable[CpuSet]
) -> State:
    """Add CPUs to a balloon up to its need, from the first place that suffices.

    If none does, take as many of the free CPUs as there are.
    """
    for place in places:
        try:
            return inflate(name, state, context, inside=place)
        except BalloonShort:
            continue
    return inflate(name, state, context, partial=True)


def lacking(state: State, context: Context) -> list[str]:
    """Return the balloons, no components, that free CPUs may be for; by name."""
    if not state.free:
        return []
    return [
        one.name
        for one in state.balloons.values()
        if not one.within
        # Components are compared one by one: one can lack what another has in excess.
        if one.parts or one.cpus.bits.bit_count() < _need(one, context)
    ]


def grow(names: Iterable[str], state: State, context: Context) -> State:
    """Give those of some balloons that are there the CPUs that they lack.

    They get as many as there are.
    """
    for name in names:
        if name in state.balloons:
            state = inflate(name, state, context, partial=True)
    return state


def deflate(name: str, state: State, context: Context, own: CpuSet = NO_CPUS) -> State:
    """Release the CPUs that a balloon does not need, its *own* ones last."""
    balloon = state.balloons[name]
    for key, wanted in needed_cpus(balloon, state, context).items():
        leaf = state.balloons[key]
        if (count := len(leaf.cpus) - wanted) > 0:
            less = leaf.cpus - give_back(count, leaf, state, context, own)
            state = with_cpus(leaf, less, state, context)
    return state


def vacate(name: str, state: State, context: Context) -> State:
    """Shrink a balloon that a container left, or remove it after its last one."""
    balloon, kind = state.balloons[name], context.type_of(state.balloons[name])
    count = state.count_whole(kind.name)
    if not balloon.is_used and count > kind.min_balloons:
        return remove(name, state)
    return deflate(name, state, context)


def remove(name: str, state: State) -> State:
    """Remove a balloon with all its components."""
    balloon = state.balloons[name]
    for part in balloon.parts:
        state = remove(part, state)
    return state.without_balloon(name)


def create_given(state: State, context: Context, *, partial: bool = False) -> State:
    """Create the balloons whose types list their CPUs, and the reserved ones.

    A *partial* call lets reserved balloons have fewer CPUs than they need.

    Raises:
        BalloonShort: There are too few CPUs.
    """
    for kind in context.settings.types:
        for _ in kind.cpus:
            state, _ = create(kind, state, context)
    if reserved := context.settings.reserved:
        kind = context.settings.by_name[RESERVED]
        for _ in range(kind.min_balloons):
            state, name = create(kind, state, context)
            # From the reserved CPUs first; a larger minimum takes others as well.
            state = inflate(name, state, context, inside=reserved, partial=True)
            state = inflate(name, state, context, partial=partial)
    return state


def create_minimum(state: State, context: Context, *, partial: bool = False) -> State:
    """Create balloons up to the minimum number of each type.

    A *partial* call lets them have fewer CPUs than they need.

    Raises:
        BalloonShort: There are too few free CPUs.
    """
    for kind in sorted(
        context.settings.types, key=lambda one: _ORDER.index(one.priority)
    ):
        missing = kind.min_balloons - state.count_whole(kind.name)
        for _ in range(missing):
            state, name = create(kind, state, context)
            state = inflate(name, state, context, partial=partial)
    return state


def _missing(milli: int, leaves: list[tuple[Balloon, int, int]]) -> int:
    wanted = ((-(-milli // (share * ONE_CPU)), leaf) for leaf, share, _ in leaves)
    return sum(max(count - len(leaf.cpus), 0) for count, leaf in wanted)


def _clamped(milli: int, kind: BalloonType, *, low: bool = True) -> int:
    if kind.max_cpus is not None:
        milli = min(milli, ONE_CPU * kind.max_cpus)
    return max(milli, ONE_CPU * kind.min_cpus) if low else milli


def _need(balloon: Balloon, context: Context) -> int:
    """Return how many CPUs a balloon without parts should have."""
    kind = context.type_of(balloon)
    return _leaf_need(balloon.load, kind, balloon, used=balloon.is_used)


def _leaf_need(milli: int, kind: BalloonType, leaf: Balloon, *, used: bool) -> int:
    if kind.cpus:
        return len(kind.cpus[leaf.index])
    # A container that requests nothing still needs a CPU to run on.
    count = -(-milli // ONE_CPU) or int(used)
    if kind.max_cpus is not None:
        count = min(count, kind.max_cpus)
    return max(count, kind.min_cpus)


def _components(kind: BalloonType, state: State, context: Context) -> list[BalloonType]:
    parts = [context.settings.by_name[one] for one in kind.components]
    if not kind.balance_components:
        return parts
    # The first type of those with the fewest balloons.
    return [min(parts, key=lambda part: _count(part, state, context))]


def _count(kind: BalloonType, state: State, context: Context) -> int:
    """Count the balloons of a type and of its components' types."""
    inside = (context.settings.by_name[one] for one in kind.components)
    below = sum(_count(one, state, context) for one in inside)
    return state.count(kind.name) + below


def with_cpus(leaf: Balloon, cpus: CpuSet, state: State, context: Context) -> State:
    """Replace the CPUs of a balloon without parts; the new ones must be free."""
    # CPUs and reach of composite balloons follow from their components.
    free = state.free | leaf.cpus
    reach = context.reach_of(context.type_of(leaf), cpus)
    changed = [replace(leaf, cpus=cpus, reach=reach)]
    above = leaf.within
    known = {changed[0].name: changed[0]}
    while above:
        whole = state.balloons[above]
        parts = [known.get(one) or state.balloons[one] for one in whole.parts]
        total = CpuSet.union(part.cpus for part in parts)
        direct = context.reach_of(context.type_of(whole), total) if total else NO_CPUS
        reach = CpuSet.union((direct, *(part.reach for part in parts)))
        whole = replace(whole, cpus=total, reach=reach)
        known[above], above = whole, whole.within
        changed.append(whole)
    return state.with_balloons(changed, free - cpus)
