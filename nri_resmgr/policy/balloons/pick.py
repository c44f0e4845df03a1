"""Which CPUs a balloon takes when it grows, and which it gives back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.policy.balloons.choose_type import matches_any
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.errors import BalloonShort
from nri_resmgr.policy.balloons.settings import BalloonType, ShareLevel
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState
from nri_resmgr.policy.cpus import (
    CpuRequest,
    Preferences,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import NO_CPUS, CpuSet


def take(
    count: int,
    leaf: Balloon,
    free: CpuSet,
    state: BalloonsState,
    ground: Ground,
) -> CpuSet:
    """Choose CPUs to add to a balloon.

    Of the sets that its type wants, in order, each narrows the choice if enough
    CPUs are left then. Out of what is left they are allocated close to each other
    and to what the balloon has.

    Args:
        count: How many.
        leaf: A balloon that is not composite.
        free: What to choose from.
        state: All balloons.
        ground: The machine and the settings.

    Raises:
        BalloonShort: Fewer CPUs are free.

    Source:
        nri-plugins, balloons, ``cputree.go``: the chain of resizers.
    """
    if count > len(free):
        raise BalloonShort(leaf.name, count, free)
    if count == len(free):
        return free
    kind = ground.type_of(leaf)
    if not any(load.overloads for load in kind.loads):
        return _take(count, leaf.cpus, free, _wishes(leaf, state, ground), ground, kind)
    taken = NO_CPUS
    for _ in range(count):  # each one loads what it is in
        held = leaf.cpus | taken
        wishes = _wishes(leaf, state, ground, taken)
        taken |= _take(1, held, free - taken, wishes, ground, kind)
    return taken


def give_back(
    count: int, leaf: Balloon, state: BalloonsState, ground: Ground
) -> CpuSet:
    """Choose CPUs that a balloon gives back: those that its type wants least."""
    kind = ground.type_of(leaf)
    wishes = [*_wishes(leaf, state, ground), *_one_per_element(leaf, kind, ground)]
    if kind.one_thread:
        wishes += ground.threads
    gone = NO_CPUS
    for group in _least_wanted_first(leaf.cpus, wishes):
        missing = count - len(gone)
        if len(group) <= missing:
            gone |= group
        elif missing:
            wish = _allocator_wish(kind, leaf.cpus - gone - group)
            gone |= release_cpus(group, missing, ground.machine, wish).cpus
    return gone


def _take(  # noqa: PLR0913, PLR0917 - one call of the allocator, spelled out
    count: int,
    held: CpuSet,
    free: CpuSet,
    wishes: Iterable[CpuSet],
    ground: Ground,
    kind: BalloonType,
) -> CpuSet:
    for wish in wishes:
        narrower = free & wish
        if len(narrower) >= count:
            free = narrower
    if kind.one_thread:
        return _thread_by_thread(count, held, free, ground, kind)
    return _allocate(count, held, free, ground, kind)


def _thread_by_thread(
    count: int, held: CpuSet, free: CpuSet, ground: Ground, kind: BalloonType
) -> CpuSet:
    """Take first threads of cores before second ones, in as few nodes as can be.

    The allocator has `CoreUse.ONE_THREAD` for that, which is exact, and takes tens
    of times as long on a large machine.
    """
    machine = ground.machine
    nodes = ground.nodes_of(_allocate(count, held, free, ground, kind))
    free &= machine.cpus_of(nodes)
    taken = NO_CPUS
    for threads in ground.threads:
        missing, these = count - len(taken), free & threads
        if missing < len(these):
            return taken | _allocate(missing, held | taken, these, ground, kind)
        taken |= these
    return taken


def _allocate(
    count: int, held: CpuSet, free: CpuSet, ground: Ground, kind: BalloonType
) -> CpuSet:
    if count == 0:
        return NO_CPUS
    request = CpuRequest(
        count=count, free=free, held=held, priority=kind.priority, spread=kind.spread
    )
    return allocate_cpus(request, ground.machine).cpus


def _allocator_wish(kind: BalloonType, held: CpuSet) -> Preferences:
    return Preferences(held=held, priority=kind.priority, spread=kind.spread)


def _wishes(
    leaf: Balloon, state: BalloonsState, ground: Ground, taken: CpuSet = NO_CPUS
) -> Iterator[CpuSet]:
    """Go through the sets that CPUs should come from, the most wanted first."""
    kind = ground.type_of(leaf)
    if leaf.index < len(kind.homes):
        yield kind.homes[leaf.index]
    yield from kind.near
    if kind.devices:
        yield from _near_devices(leaf, state, ground)
    online = ground.machine.online
    for far in kind.far:
        yield online - far
    for load in kind.loads:
        own = leaf.cpus | taken if load.overloads else NO_CPUS
        others = _loaded(leaf, load.level, state, ground)
        yield online - ground.around(load.level, others | own)


def _near_devices(
    leaf: Balloon, state: BalloonsState, ground: Ground
) -> Iterator[CpuSet]:
    patterns = ground.type_of(leaf).devices
    for member in _members(leaf, state):
        for hint in state.ledger.spec_of(member).hints:
            if hint.is_pod_resource and _is_of(hint, patterns):
                yield hint.cpus


def _is_of(hint: Hint, patterns: tuple[str, ...]) -> bool:
    """Tell whether a hint is of a resource, or of a device of one, that is meant."""
    _, _, name = hint.provider.partition(":")
    resource, _, _ = name.rpartition(":")
    return matches_any(name, patterns) or matches_any(resource, patterns)


def _members(leaf: Balloon, state: BalloonsState) -> tuple[str, ...]:
    while leaf.within:
        leaf = state.balloons[leaf.within]
    return leaf.members


def _loaded(
    leaf: Balloon, level: ShareLevel, state: BalloonsState, ground: Ground
) -> CpuSet:
    """Return the CPUs of other balloons with a load on a level."""
    return CpuSet.union(
        one.cpus
        for name, one in state.balloons.items()
        if name != leaf.name
        and any(load.level is level for load in ground.type_of(one).loads)
    )


def _one_per_element(
    leaf: Balloon, kind: BalloonType, ground: Ground
) -> Iterator[CpuSet]:
    for load in kind.loads:
        if load.overloads:
            parts = (one & leaf.cpus for one in ground.elements(load.level))
            yield CpuSet.from_iterable(mine.first for mine in parts if mine)


def _least_wanted_first(cpus: CpuSet, wishes: Iterable[CpuSet]) -> Iterator[CpuSet]:
    groups = [cpus]
    for wish in wishes:
        cut = (part for one in groups for part in (one & wish, one - wish))
        groups = [part for part in cut if part]
    return reversed(groups)
