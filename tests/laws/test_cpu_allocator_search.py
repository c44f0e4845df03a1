"""The search among equivalent CPUs finds the same as the search among all CPUs."""

from __future__ import annotations

from hypothesis import event, given

from nri_resmgr.policy.cpus.costs import costs_of
from nri_resmgr.policy.cpus.index import index_of
from nri_resmgr.policy.cpus.problem import PickProblem, deepest, reduced
from nri_resmgr.policy.cpus.search import cheapest_pick
from nri_resmgr.policy.cpus.uniform import UniformSearch
from nri_resmgr.values import CpuSet
from tests.examples import examples
from tests.policy.cpus.drawn_requests import (
    LARGE,
    Case,
    machine_of,
    preferring_requests,
    uniform_requests,
)


def problem_of(case: Case) -> PickProblem:
    """Reduce a request to the case in which near CPUs are required."""
    request, index = case[0], index_of(machine_of(case[1]))
    take = (request.free & request.near or request.free).bits
    count = min(request.count, take.bit_count())
    costs = costs_of(request, index)
    return PickProblem(count, take, request.free.bits, request.held.bits, costs, index)


# The search has many branches; each needs another state of the machine.
@examples(2)
@given(uniform_requests().filter(lambda case: case[0].count))
def test_alike_cpus_are_picked_as_any_cpus_are(case: Case) -> None:
    problem = problem_of(case)
    event(f"held: {bool(problem.held)}")
    # All costs and all ties, in the same order.
    expected = cheapest_pick(problem)

    if problem.held:
        assert UniformSearch(reduced(problem)).beside() == expected
    else:
        assert UniformSearch(problem).best(deepest(problem)) == expected


@given(preferring_requests(LARGE).filter(lambda case: case[0].count))
def test_narrowing_leaves_the_best_pick_as_it_is(case: Case) -> None:
    problem = problem_of(case)
    near = reduced(problem)

    assert CpuSet(near.take) <= CpuSet(problem.take)
    assert cheapest_pick(near) == cheapest_pick(problem)
