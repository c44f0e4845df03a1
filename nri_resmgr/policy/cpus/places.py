"""The groups that can hold a pick alone, and the tightest of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.policy.cpus.problem import Problem
from nri_resmgr.values import CpuSet


def deepest(problem: Problem) -> int:
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


def every_place(problem: Problem, depth: int) -> list[int]:
    """Return all groups at *depth* that hold the pick."""
    take, wanted = problem.take, problem.count
    return [
        place
        for place, mask in enumerate(problem.index.partitions[depth].groups)
        if (mask & take).bit_count() >= wanted
    ]


def tightest(problem: Problem, depth: int) -> list[int]:
    """Find the places with the least room around, widest groups first.

    Where the price of room is negative, the ones with the most.
    """
    index, free, wanted, zone = problem.index, problem.free, problem.count, [0]
    roomy = problem.costs.room[0] < 0
    for outer in range(1, depth + 1):
        within, masks = index.within[outer - 1], index.partitions[outer].groups
        alike: dict[int, list[int]] = {}
        for around in zone:
            for kid in within[around][0]:
                room = (masks[kid] & free).bit_count()
                if room >= wanted:
                    alike.setdefault(room, []).append(kid)
        for room in sorted(alike, reverse=roomy):
            if holding := list(_holding(problem, outer, depth, alike[room])):
                zone = holding
                break
    return zone


def _holding(
    problem: Problem, depth: int, deep: int, groups: Iterable[int]
) -> Iterator[int]:
    """Leave groups with a place at depth *deep*, of idle ones alike the first."""
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


def zone_of(problem: Problem) -> tuple[int, int]:
    """Return depth and place of the narrowest group with all CPUs to take."""
    index, take = problem.index, problem.take
    depth = 0
    first = CpuSet(take).first
    for below in range(1, len(index.partitions)):
        if take & ~index.home[below][first]:
            break
        depth = below
    return depth, index.partitions[depth].groups.index(index.home[depth][first])
