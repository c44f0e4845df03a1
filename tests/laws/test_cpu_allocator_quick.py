"""The quick way to a pick never claims what the exact search would not find."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import event, given
from hypothesis import strategies as st

from nri_resmgr.policy.cpus import Preferences
from nri_resmgr.policy.cpus.costs import costs_of
from nri_resmgr.policy.cpus.index import CpuIndex, index_of
from nri_resmgr.policy.cpus.problem import Problem, narrowed
from nri_resmgr.policy.cpus.quick import Quick
from nri_resmgr.policy.cpus.search import cheapest
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

SPECS = (
    "2s8c2t",
    "2s2n6c2t",
    "2s2n8c2t l3=4",
    "1s24c2t l3=4",
    "1s2d2n6c1t l3=3",
    "4s4c4t",
    "1s32c1t cluster=4 l3=8",
)

index_of_spec = lru_cache(lambda spec: index_of(parse_spec(spec)))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw a machine with taken cores and threads, and a number of CPUs."""
    index = index_of_spec(draw(st.sampled_from(SPECS)))
    cores, every = index.partitions[-1].groups, index.root.bits
    taken = sum(draw(st.sets(st.sampled_from(cores))))
    taken |= draw(st.integers(0, every)) & draw(st.integers(0, every))
    free = every & ~taken
    free |= cores[0]
    count = draw(st.integers(1, free.bit_count()))
    costs = costs_of(Preferences(), index)
    return Problem(count, free, free, 0, costs, index)


def touched(cpus: CpuSet, index: CpuIndex) -> list[int]:
    return [
        sum(bool(mask & cpus.bits) for mask in cut.groups) for cut in index.partitions
    ]


@given(problems(), st.sampled_from((1, -1)))
def test_a_quick_pick_that_claims_to_be_the_best_is_it(
    problem: Problem, sign: int
) -> None:
    pick, is_best = Quick(problem, sign).best()
    event(f"claims to be the best: {is_best}")

    assert len(pick) == problem.count
    assert pick <= CpuSet(problem.take)
    if is_best:
        assert touched(pick, problem.index) == touched(cheapest(problem), problem.index)


@given(problems())
def test_any_quick_pick_is_the_best_down_to_the_group_that_holds_it(
    problem: Problem,
) -> None:
    quick, _ = Quick(problem, 1).best()
    best = touched(cheapest(problem), problem.index)
    depth = best.count(1)

    # One level further the fewest groups are still found, and only then not.
    assert touched(quick, problem.index)[: depth + 1] == best[: depth + 1]


@given(problems())
def test_narrowing_leaves_the_price_of_the_best_pick_as_it_is(
    problem: Problem,
) -> None:
    before = touched(cheapest(problem), problem.index)

    assert touched(cheapest(narrowed(problem)), problem.index) == before
