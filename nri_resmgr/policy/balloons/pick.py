"""CPUs chosen for a balloon that grows, and CPUs to release of one that shrinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.policy.balloons.choose_type import matches_any
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.errors import BalloonShort
from nri_resmgr.policy.balloons.settings import BalloonType, ShareLevel
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.cpus import (
    CpuPreferences,
    CpuRequest,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import NO_CPUS, CpuSet


def take(
    count: int, leaf: Balloon, free: CpuSet, state: State, context: Context
) -> CpuSet:
    """Choose CPUs out of *free* to add to a balloon that is not composite.

    Each preferred set of its type narrows the choice in turn, if that leaves enough
    CPUs. The CPU allocator then takes CPUs close to each other and to those that the
    balloon has.

    Raises:
        BalloonShort: Fewer CPUs are free.

    Source:
        nri-plugins, balloons, ``cputree.go``: the chain of resizers.
    """
    if count > len(free):
        raise BalloonShort(leaf.name, count, free)
    if count == len(free):
        return free
    kind = context.type_of(leaf)
    if not any(load.overloads for load in kind.loads):
        return _take(
            count, leaf.cpus, free, _preferred_sets(leaf, state, context), context, kind
        )
    taken = NO_CPUS
    for _ in range(count):  # each CPU taken loads the elements that it is in
        held = leaf.cpus | taken
        preferred = _preferred_sets(leaf, state, context, taken)
        taken |= _take(1, held, free - taken, preferred, context, kind)
    return taken


def give_back(
    count: int, leaf: Balloon, state: State, context: Context, own: CpuSet = NO_CPUS
) -> CpuSet:
    """Choose CPUs to release from a balloon: those that its type prefers least.

    *own* are released last: they are known to be the balloon's.
    """
    kind = context.type_of(leaf)
    preferred = [
        own,
        *_preferred_sets(leaf, state, context),
        *_one_per_element(leaf, kind, context),
    ]
    if kind.one_thread:
        preferred += context.threads
    gone = NO_CPUS
    for group in _least_preferred_first(leaf.cpus, preferred):
        missing = count - len(gone)
        if len(group) <= missing:
            gone |= group
        elif missing:
            held, spread = leaf.cpus - gone - group, kind.spread
            stay = CpuPreferences(held=held, priority=kind.priority, spread=spread)
            gone |= release_cpus(group, missing, context.machine, stay).cpus
    return gone


def _take(  # noqa: PLR0913, PLR0917 - one call of the allocator, spelled out
    count: int,
    held: CpuSet,
    free: CpuSet,
    preferred: Iterable[CpuSet],
    context: Context,
    kind: BalloonType,
) -> CpuSet:
    for cpus in preferred:
        narrower = free & cpus
        if len(narrower) >= count:
            free = narrower
    if kind.one_thread:
        return _thread_by_thread(count, held, free, context, kind)
    return _allocate(count, held, free, context, kind)


def _thread_by_thread(
    count: int, held: CpuSet, free: CpuSet, context: Context, kind: BalloonType
) -> CpuSet:
    """Take CPUs of different cores, and first threads before second ones.

    Few nodes come before many cores: where no as small a number of nodes has enough
    cores, second threads are taken there.

    `CoreUse.ONE_THREAD` of the allocator is exact, and takes tens of times as long on
    a large machine.
    """
    nodes = context.nodes_of(_allocate(count, held, free, context, kind))
    taken = _one_of_each_core(count, held, free, context, kind)
    if len(taken) == count and len(context.nodes_of(taken)) <= len(nodes):
        return taken
    free &= context.machine.cpus_of(nodes)
    taken = _one_of_each_core(count, held, free, context, kind)
    missing = count - len(taken)
    return taken | _allocate(missing, held | taken, free - taken, context, kind)


def _one_of_each_core(
    most: int, held: CpuSet, free: CpuSet, context: Context, kind: BalloonType
) -> CpuSet:
    """Take up to so many CPUs, of cores without *held* ones, first threads first."""
    taken = NO_CPUS
    for threads in context.threads:
        used = held | taken
        these = (free & threads) - context.around(ShareLevel.CORE, used)
        missing = most - len(taken)
        if missing < len(these):
            return taken | _allocate(missing, used, these, context, kind)
        taken |= these
    return taken


def _allocate(
    count: int, held: CpuSet, free: CpuSet, context: Context, kind: BalloonType
) -> CpuSet:
    if count == 0:
        return NO_CPUS
    request = CpuRequest(
        count=count, free=free, held=held, priority=kind.priority, spread=kind.spread
    )
    return allocate_cpus(request, context.machine).cpus


def _preferred_sets(
    leaf: Balloon, state: State, context: Context, taken: CpuSet = NO_CPUS
) -> Iterator[CpuSet]:
    """Yield the sets that CPUs should come from, the most preferred first."""
    kind = context.type_of(leaf)
    if leaf.index < len(kind.homes):
        yield kind.homes[leaf.index]
    yield from kind.near
    if kind.devices:
        yield from _near_devices(leaf, state, context)
    online = context.machine.online
    for far in kind.far:
        yield online - far
    for load in kind.loads:
        held = leaf.cpus | taken if load.overloads else NO_CPUS
        others = _loaded(leaf, load.level, state, context)
        yield online - context.around(load.level, others | held)


def _near_devices(leaf: Balloon, state: State, context: Context) -> Iterator[CpuSet]:
    patterns = context.type_of(leaf).devices
    for member in state.outermost(leaf).members:
        for hint in state.ledger.spec_of(member).hints:
            if hint.is_pod_resource and _matches(hint, patterns):
                yield hint.cpus


def _matches(hint: Hint, patterns: tuple[str, ...]) -> bool:
    """Return whether a hint's device, or its resource, matches any pattern."""
    _, _, name = hint.provider.partition(":")
    # Ids of devices may have colons, such as PCI addresses; resources have none.
    resource, _, _ = name.partition(":")
    return matches_any(name, patterns) or matches_any(resource, patterns)


def _loaded(leaf: Balloon, level: ShareLevel, state: State, context: Context) -> CpuSet:
    """Return the CPUs of other balloons with a load at a level."""
    return CpuSet.union(
        one.cpus
        for name, one in state.balloons.items()
        if name != leaf.name
        and any(load.level is level for load in context.type_of(one).loads)
    )


def _one_per_element(
    leaf: Balloon, kind: BalloonType, context: Context
) -> Iterator[CpuSet]:
    for load in kind.loads:
        if load.overloads:
            parts = (one & leaf.cpus for one in context.elements(load.level))
            yield CpuSet.from_iterable(mine.first for mine in parts if mine)


def _least_preferred_first(
    cpus: CpuSet, preferred: Iterable[CpuSet]
) -> Iterator[CpuSet]:
    groups = [cpus]
    for better in preferred:
        split = (part for one in groups for part in (one & better, one - better))
        groups = [part for part in split if part]
    return reversed(groups)
