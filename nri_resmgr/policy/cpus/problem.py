"""The allocator's problem, reduced to CPUs and groups that can be in the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.cpus.costs import PickCosts
from nri_resmgr.policy.cpus.index import CpuIndex
from nri_resmgr.values import CpuSet


class PickProblem(msgspec.Struct, frozen=True):
    """Take *count* CPUs of *take*, which has more, at the least cost.

    Attributes:
        free: Free CPUs, by which a group is tight or roomy; includes `take`.
        held: CPUs that the container has already.
    """

    count: int
    take: int
    free: int
    held: int
    costs: PickCosts
    index: CpuIndex

    @property
    def is_uniform(self) -> bool:
        """True if CPUs are interchangeable, so that only groups decide."""
        costs = self.costs
        classes = sum(bool(mask & self.take) for mask, _ in costs.cpus)
        return costs.is_plain and classes == 1

    def fitting(self, depth: int) -> list[int]:
        """Return the groups at *depth* that can hold the pick alone."""
        take, count = self.take, self.count
        groups = self.index.partitions[depth].groups
        return [mask for mask in groups if (mask & take).bit_count() >= count]


def reduced(problem: PickProblem) -> PickProblem:
    """Return the problem without CPUs that no best pick has.

    A group that holds the pick alone is cheaper than two groups. This decides at each
    depth of packages, dies and nodes, and deeper if CPUs are interchangeable.
    """
    if not problem.costs.counts_groups:
        return problem
    return _beside(problem) if problem.held else _inside_one(problem)


def deepest(problem: PickProblem) -> int:
    """Return the greatest depth with a group that holds the pick."""
    index, take, wanted = problem.index, problem.take, problem.count
    found = 0
    for depth, cut in enumerate(index.partitions):
        if index.largest[depth] < wanted:
            break
        if not any((mask & take).bit_count() >= wanted for mask in cut.groups):
            break
        found = depth
    return found


def every_place(problem: PickProblem, depth: int) -> list[int]:
    """Return all groups at *depth* that hold the pick."""
    take, wanted = problem.take, problem.count
    return [
        place
        for place, mask in enumerate(problem.index.partitions[depth].groups)
        if (mask & take).bit_count() >= wanted
    ]


def tightest(problem: PickProblem, depth: int) -> list[int]:
    """Return the places with the fewest free CPUs around, widest groups first.

    With a negative price of free CPUs (`spread`), those with the most.
    """
    index, free, wanted, zone = problem.index, problem.free, problem.count, [0]
    roomy = problem.costs.room[0] < 0
    for outer in range(1, depth + 1):
        within, masks = index.within[outer - 1], index.partitions[outer].groups
        by_room: dict[int, list[int]] = {}
        for around in zone:
            for child in within[around][0]:
                room = (masks[child] & free).bit_count()
                if room >= wanted:
                    by_room.setdefault(room, []).append(child)
        for room in sorted(by_room, reverse=roomy):
            if holding := list(_holding(problem, outer, depth, by_room[room])):
                zone = holding
                break
    return zone


def zone_of(problem: PickProblem) -> tuple[int, int]:
    """Return depth and index of the narrowest group with all CPUs to take."""
    index, take = problem.index, problem.take
    depth = 0
    first = CpuSet(take).first
    for below in range(1, len(index.partitions)):
        if take & ~index.home[below][first]:
            break
        depth = below
    return depth, index.partitions[depth].groups.index(index.home[depth][first])


def _inside_one(problem: PickProblem) -> PickProblem:
    """Keep the deepest of packages, dies and nodes with room, of the best classes."""
    deepest = problem.index.inside - 1
    for depth in range(deepest, 0, -1):
        if fitting := problem.fitting(depth):
            break
    else:
        depth, fitting = 0, list(problem.index.partitions[0].groups)
    if depth == deepest:
        paid = [_classes_paid(mask, problem) for mask in fitting]
        least = min(paid)
        fitting = [
            mask for mask, price in zip(fitting, paid, strict=True) if price == least
        ]
        if not least:
            return _kept(problem, fitting, problem.costs.cpus[0][0])
    return _kept(problem, fitting)


def _classes_paid(mask: int, problem: PickProblem) -> int:
    """Return the least price for classes of CPUs of a pick out of *mask*."""
    missing, price = problem.count, 0
    for kind, each in problem.costs.cpus:
        taken = min(missing, (mask & kind & problem.take).bit_count())
        price += each * taken
        missing -= taken
    return price


def _kept(problem: PickProblem, groups: Iterable[int], kind: int = -1) -> PickProblem:
    zone = 0
    for mask in groups:
        zone |= mask
    return replace(problem, take=problem.take & zone & kind)


def _beside(problem: PickProblem) -> PickProblem:
    """Keep the groups that the container is in, as deep as they hold the pick."""
    index, near = problem.index, [0]
    for depth in range(
        1, len(index.partitions) if problem.is_uniform else index.inside
    ):
        masks, within = index.partitions[depth].groups, index.within[depth - 1]
        near = [
            child
            for around in near
            for child in within[around][0]
            if masks[child] & problem.held
        ]
        beside = _kept(problem, [masks[child] for child in near])
        if beside.take.bit_count() < problem.count:
            break
        problem = beside
    return problem


def _holding(
    problem: PickProblem, depth: int, deep: int, groups: Iterable[int]
) -> Iterator[int]:
    """Yield groups with a place at depth *deep*; of equal idle ones only the first."""
    index, take, wanted = problem.index, problem.take, problem.count
    masks, places = index.partitions[depth].groups, index.partitions[deep].groups
    shapes, within = index.shapes[depth], index.within[depth]
    idle: set[int] = set()
    for at in groups:
        if masks[at] & take == masks[at]:
            if shapes[at] in idle:
                continue
            idle.add(shapes[at])
        below = within[at][deep - depth - 1] if deep > depth else (at,)
        for one in below:
            if (places[one] & take).bit_count() >= wanted:
                yield at
                break
