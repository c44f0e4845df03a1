"""What a pick out of a group costs at least, and how much it can leave over."""

from __future__ import annotations

from nri_resmgr.policy.cpus.pairs import Pairs
from nri_resmgr.policy.cpus.problem import Problem
from nri_resmgr.policy.cpus.windows import fewest

# The price of touching groups inside of a group, that group, and per depth the
# most CPUs that a touched group leaves if the pick touches no more groups.
Bound = tuple[int, int, list[int]]


def bound(problem: Problem, pairs: Pairs, depth: int, place: int) -> Bound:
    """Look at every level inside of a group alone: no pick touches fewer groups."""
    index, touch = problem.index, problem.costs.touch
    mask, last = index.partitions[depth].groups[place], len(index.partitions) - 1
    touched = 0
    slacks = [0] * (depth + 1)
    for below in range(depth + 1, last + 1):
        if below == last and pairs.knows(mask):
            many, slack = pairs.fewest(mask)
        else:
            many, slack = _fewest(problem, depth, place, below)
        touched += many * touch[below]
        slacks.append(slack)
    return touched, place, slacks


def _fewest(problem: Problem, depth: int, place: int, below: int) -> tuple[int, int]:
    take, held = problem.take, problem.held
    masks = problem.index.partitions[below].groups
    groups = [masks[at] for at in problem.index.within[depth][place][below - depth - 1]]
    spare = 0
    if held:
        spare = sum((mask & take).bit_count() for mask in groups if mask & held)
        groups = [mask for mask in groups if not mask & held]
    sizes = [(mask & take).bit_count() for mask in groups]
    return fewest(sizes, spare, problem.count)
