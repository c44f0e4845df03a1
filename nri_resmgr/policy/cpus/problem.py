"""One question to the allocator, cut down to what can still be part of the answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nri_resmgr.policy.cpus.costs import Costs
from nri_resmgr.policy.cpus.index import CpuIndex


class Problem(msgspec.Struct, frozen=True):
    """*count* CPUs out of those to *take*, at *costs*.

    Attributes:
        count: How many, at least 1 and fewer than `take` has.
        take: CPUs that the pick may have.
        free: CPUs that count as room in a group; at least those of `take`.
        held: CPUs that the container has already.
        costs: What is better than what.
        index: The machine.
    """

    count: int
    take: int
    free: int
    held: int
    costs: Costs
    index: CpuIndex

    @property
    def is_alike(self) -> bool:
        """Whether only groups and room decide: no CPU differs from another."""
        costs = self.costs
        classes = sum(bool(mask & self.take) for mask, _ in costs.cpus)
        return costs.is_plain and classes == 1

    def taking(self, take: int) -> Problem:
        """Return the same problem with other CPUs to choose from."""
        return Problem(self.count, take, self.free, self.held, self.costs, self.index)

    def fitting(self, depth: int) -> list[int]:
        """Return the groups at *depth* that can hold the pick alone."""
        take, count = self.take, self.count
        groups = self.index.partitions[depth].groups
        return [mask for mask in groups if (mask & take).bit_count() >= count]


def narrowed(problem: Problem) -> Problem:
    """Leave out CPUs that no best pick has.

    A group that holds the pick alone is cheaper than two. That is all there is
    to say while groups decide: at every depth of packages, dies and nodes, and
    further down where CPUs are all alike.
    """
    if not problem.costs.counts_groups:
        return problem
    return _beside(problem) if problem.held else _inside_one(problem)


def _inside_one(problem: Problem) -> Problem:
    """Leave the deepest wide groups with room, and those of the best classes."""
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


def _classes_paid(mask: int, problem: Problem) -> int:
    """Return what the classes of CPUs cost at least in a pick out of *mask*."""
    missing, price = problem.count, 0
    for kind, each in problem.costs.cpus:
        taken = min(missing, (mask & kind & problem.take).bit_count())
        price += each * taken
        missing -= taken
    return price


def _kept(problem: Problem, groups: Iterable[int], kind: int = -1) -> Problem:
    zone = 0
    for mask in groups:
        zone |= mask
    return problem.taking(problem.take & zone & kind)


def _beside(problem: Problem) -> Problem:
    """Stay in groups that the container is in already, as far down as they hold it."""
    index, near = problem.index, [0]
    for depth in range(1, len(index.partitions) if problem.is_alike else index.inside):
        masks, within = index.partitions[depth].groups, index.within[depth - 1]
        near = [
            kid
            for around in near
            for kid in within[around][0]
            if masks[kid] & problem.held
        ]
        beside = _kept(problem, [masks[kid] for kid in near])
        if beside.take.bit_count() < problem.count:
            break
        problem = beside
    return problem
