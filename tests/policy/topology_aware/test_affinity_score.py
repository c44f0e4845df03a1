from __future__ import annotations

from functools import reduce

import msgspec
import pytest

from nri_resmgr.policy.affinity import Affinity, Expression, Operator
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.topology_aware.affinity_score import (
    affinity_scores,
    affinity_weights,
)
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

MACHINE = parse_spec("2s2n2c2t")
TREE = PoolTree.of(MACHINE, MACHINE.online, CpuSet.of(0))
SETTINGS = TopologyAwareSettings(available=MACHINE.online, reserved=CpuSet.of(0))


def container(title: str) -> ContainerSpec:
    """Make one of ``namespace/pod/name``."""
    namespace, pod, name = title.split("/")
    return ContainerSpec(
        id=title,
        pod=f"{namespace}/{pod}",
        namespace=namespace,
        name=name,
        pod_name=pod,
        pod_labels={"app": pod},
    )


NODE = reduce(
    lambda ledger, title: ledger.put(container(title), NO_PIN),
    ("sales/shop/web", "sales/shop/db", "sales/bank/db", "test/shop/db"),
    Ledger.of(),
)


def named(*names: str) -> Expression:
    return Expression("name", Operator.IN, names)


ANYBODY = Expression("", Operator.ALWAYS_TRUE)
SHOPS = Expression("pod/labels/app", Operator.EQUALS, ("shop",))
THE_BANKS_DB = Expression(":pod/name:name", Operator.EQUALS, ("bank:db",))


@pytest.mark.parametrize(
    ("rules", "weights"),
    [
        pytest.param(
            [Affinity(named("web", "db"))],
            {"sales/shop/web": 1, "sales/shop/db": 1},
            id="without a scope the own pod is asked",
        ),
        pytest.param(
            [Affinity(named("db"), scope=ANYBODY, weight=-5)],
            {"sales/shop/db": -5, "sales/bank/db": -5, "test/shop/db": -5},
            id="all containers are counted",
        ),
        pytest.param(
            [Affinity(named("db"), scope=SHOPS, weight=7)],
            {"sales/shop/db": 7, "test/shop/db": 7},
            id="pods with a label are asked",
        ),
        pytest.param(
            [Affinity(THE_BANKS_DB, scope=ANYBODY)],
            {"sales/bank/db": 1},
            id="two keys select one container",
        ),
        pytest.param(
            [Affinity(named("db"), scope=ANYBODY, weight=3), Affinity(named("db"))],
            {"sales/shop/db": 4, "sales/bank/db": 3, "test/shop/db": 3},
            id="rules add up",
        ),
        pytest.param(
            [Affinity(named("db"), weight=3), Affinity(named("db"), weight=-3)],
            {},
            id="rules cancel each other out",
        ),
        pytest.param([Affinity(named("cache"))], {}, id="no container matches"),
        pytest.param(
            [Affinity(named("new"), scope=ANYBODY)], {}, id="not attracted by itself"
        ),
    ],
)
def test_rules_attract_and_repel_a_container(
    rules: list[Affinity], weights: dict[str, int]
) -> None:
    new = msgspec.structs.replace(
        container("sales/shop/new"),
        preferences=Preferences(affinities=tuple(rules)),
    )

    assert affinity_weights(new, NODE.put(new, NO_PIN), SETTINGS) == weights


@pytest.mark.parametrize(
    ("pods", "namespaces", "weights"),
    [
        pytest.param(False, False, {}, id="nothing is to be close"),
        pytest.param(
            True, False, {"sales/shop/web": 10, "sales/shop/db": 10}, id="pods are"
        ),
        pytest.param(
            False,
            True,
            {"sales/shop/web": 10, "sales/shop/db": 10, "sales/bank/db": 10},
            id="namespaces are",
        ),
        pytest.param(
            True,
            True,
            {"sales/shop/web": 20, "sales/shop/db": 20, "sales/bank/db": 10},
            id="both are",
        ),
    ],
)
def test_colocation_attracts_containers_of_pod_and_namespace(
    pods: bool,  # noqa: FBT001 - a column of the table
    namespaces: bool,  # noqa: FBT001 - a column of the table
    weights: dict[str, int],
) -> None:
    settings = msgspec.structs.replace(
        SETTINGS, colocate_pods=pods, colocate_namespaces=namespaces
    )

    assert affinity_weights(container("sales/shop/new"), NODE, settings) == weights


def test_rules_of_a_container_replace_colocation() -> None:
    settings = msgspec.structs.replace(
        SETTINGS, colocate_pods=True, colocate_namespaces=True
    )
    new = msgspec.structs.replace(
        container("sales/shop/new"),
        preferences=Preferences(affinities=(Affinity(named("web")),)),
    )

    assert affinity_weights(new, NODE, settings) == {"sales/shop/web": 1}


@pytest.mark.parametrize(
    ("weights", "scores"),
    [
        # Two levels below the root: 16 parts here, 12 a step away, 9 two steps away.
        pytest.param(
            {"leaf": 1},
            {"NUMA node #0": 16, "socket #0": 12, "root": 9},
            id="in a leaf: it and what is above",
        ),
        pytest.param(
            {"socket": -2},
            {
                "NUMA node #0": -24,
                "NUMA node #1": -24,
                "socket #0": -32,
                "root": -24,
            },
            id="in the middle: both ways",
        ),
        pytest.param(
            {"root": 1},
            {
                "NUMA node #0": 9,
                "NUMA node #1": 9,
                "NUMA node #2": 9,
                "NUMA node #3": 9,
                "socket #0": 12,
                "socket #1": 12,
                "root": 16,
            },
            id="in the root: all below",
        ),
        pytest.param(
            {"leaf": 1, "other leaf": -1},
            {
                "NUMA node #0": 16,
                "NUMA node #2": -16,
                "socket #0": 12,
                "socket #1": -12,
            },
            id="in two leaves: they cancel out above",
        ),
        pytest.param({"not granted": 1000}, {}, id="nowhere yet"),
        pytest.param({}, {}, id="none"),
    ],
)
def test_how_attractive_pools_are(
    weights: dict[str, int], scores: dict[str, int]
) -> None:
    places = {
        "leaf": "NUMA node #0",
        "socket": "socket #0",
        "root": "root",
        "other leaf": "NUMA node #2",
    }
    grants = {}
    for key, name in places.items():
        pool = TREE.named(name)
        assert pool
        grants[key] = Grant(key, CpuKind.SHARED, pool.id)

    actual = affinity_scores(weights, grants, TREE)

    named_scores = zip((pool.name for pool in TREE.pools), actual, strict=True)
    assert {name: score for name, score in named_scores if score} == scores
