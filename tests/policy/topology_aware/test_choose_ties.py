"""Which of pools that are as near and as deep is chosen, and what comes next."""

from __future__ import annotations

import pytest

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.criteria import Criterion
from nri_resmgr.policy.topology_aware.state import NodeView
from tests.policy.topology_aware.choosing import (
    Tenant,
    asked,
    best_effort,
    guaranteed,
    view,
)

# CPUs 0-3, 4-7, 8-11 and 12-15 in NUMA nodes #0 to #3, two in each socket
NODES = [f"NUMA node #{number}" for number in range(4)]


def share(*millis: tuple[int, ...]) -> NodeView:
    """Let containers share the four nodes, so much each."""
    tenants = [
        Tenant(pool, one)
        for pool, some in zip(NODES, millis, strict=False)
        for one in some
    ]
    return view("2s2n4c", tenants)


@pytest.mark.parametrize(
    ("node", "spec", "expected"),
    [
        pytest.param(
            share((100, 100), (1000,), (10,), ()),
            best_effort(),
            ["#3 colocation", "#2 spread", "#1 colocation", "#0 fewer-nodes"],
            id="containers that share go where fewest do, then where most is left",
        ),
        pytest.param(
            share((900,), (800,), (800,), (900,)),
            guaranteed(500),
            ["#1 id", "#2 spread", "#0 id", "#3 fewer-nodes"],
            id="among alike pools the first one",
        ),
        pytest.param(
            share((500,), (), (200, 100), ()),
            guaranteed(1000),
            ["#1 id", "#3 spread", "#2 spread", "#0 fewer-nodes"],
            id="CPUs for one alone come from where most is left",
        ),
        pytest.param(
            share((100, 100), (200,), (200,), (300,)),
            guaranteed(1000),
            ["#1 id", "#2 fewer-touched", "#0 spread", "#3 fewer-nodes"],
            id="where as much is left, few containers are to lose CPUs by it",
        ),
        pytest.param(
            view("2s2n4c", [Tenant(NODES[0], 0, "0"), Tenant(NODES[1], 0)]),
            best_effort(),
            ["#2 id", "#3 colocation", "#1 spread", "#0 fewer-nodes"],
            id="one that has CPUs of its own besides is a neighbour as well",
        ),
        pytest.param(
            view("2s2n4c", [Tenant(NODES[0], None, "0-2")]),
            guaranteed(980),
            ["#1 id", "#2 id", "#3 colocation", "#0 fewer-nodes"],
            id="one that shares nothing is a neighbour as well",
        ),
    ],
)
def test_leaves(node: NodeView, spec: ContainerSpec, expected: list[str]) -> None:
    found = list(candidates(asked(spec, node), node))

    reported = [f"{c.pool.name.removeprefix('NUMA node ')} {c.decided}" for c in found]
    assert reported[:4] == expected


def test_containers_of_sockets_are_touched_by_grants_of_nodes() -> None:
    at_root, at_socket = Tenant("socket #1", 250), Tenant("socket #0", 125)
    node = view("2s2n4c", [at_root, at_socket, at_socket])

    first = next(candidates(asked(guaranteed(1000), node), node))

    assert (first.pool.name, first.decided) == ("NUMA node #2", Criterion.ID)


def test_containers_of_nodes_are_touched_by_grants_of_sockets() -> None:
    mixed, shared = Tenant(NODES[0], 100, cpus="0"), Tenant(NODES[1], 100)
    own = Tenant(NODES[2], cpus="8")
    node = view("2s2n4c", [mixed, shared, own, Tenant(NODES[3], 200)])

    first = next(candidates(asked(guaranteed(5000), node), node))

    assert (first.pool.name, first.decided) == ("socket #1", Criterion.DISTURBANCE)


def test_the_deepest_is_better_where_memory_is_the_same() -> None:
    node = view("1s8c l3=4")

    found = candidates(asked(guaranteed(2000), node), node)

    assert [(one.pool.name, one.decided) for one in found] == [
        ("socket #0/L3 cache #0", Criterion.ID),
        ("socket #0/L3 cache #1", Criterion.DEPTH),
        ("socket #0", Criterion.ONLY_ONE),
    ]


def test_scores_are_reported_of_every_respect_in_turn() -> None:
    node = view("2s2c", [Tenant("socket #0", 100)])

    first = next(candidates(asked(guaranteed(1000), node), node))

    assert first.pool.name == "socket #1"
    assert first.scores() == (
        (Criterion.ISOLATED, 0),
        (Criterion.FEWER_NODES, -1),
        (Criterion.DEPTH, 1),
        (Criterion.SPREAD, 2000),
        (Criterion.DISTURBANCE, 0),
        (Criterion.ID, -1),
    )
