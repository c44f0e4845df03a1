"""Which containers are isolated, by the policies, and on which CPUs."""

from __future__ import annotations

from typing import Any

import pytest

from nri_resmgr.classes.isolation.requests import IsolationRequest
from nri_resmgr.policy.events import Stopped
from tests.policy.policy_node import PolicyNode

TREE = 'reservedResources: {cpu: "cpuset:0"}'
BALLOONS = """
reservedResources: {cpu: "cpuset:0"}
balloonTypes:
- {name: own, preferNewBalloons: true, matchExpressions:
   [{key: name, operator: In, values: [web, db]}]}
- {name: all, maxBalloons: 1}
"""
ASKED = {"cpu-quota.crio.io": "disable"}
WISH = IsolationRequest(unlimited=True)


class Node(PolicyNode):
    """A node of eight cores."""

    def __init__(self, kind: str, spec: str) -> None:
        super().__init__("1s8c1t memory=16Gi", kind, spec)

    def isolated(self) -> dict[str, str]:
        found = self.policy.host_use(self.state).isolated
        assert {one.request for one in found} <= {WISH}
        return {one.container: str(one.cpus) for one in found}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param({"guaranteed": 2}, {"web": "1-2"}, id="whole CPUs"),
        pytest.param({"burstable": 2}, {}, id="shared ones of a Burstable container"),
        pytest.param({"guaranteed": "1500m"}, {}, id="some of its own and a part"),
        pytest.param(
            {
                "guaranteed": 2,
                "annotations": {"prefer-shared-cpus.resource-policy.nri.io": "true"},
            },
            {},
            id="shared ones that it asks for",
        ),
    ],
)
def test_the_tree_isolates_containers_with_exclusive_cpus(
    row: dict[str, Any], expected: dict[str, str]
) -> None:
    node = Node("TopologyAwarePolicy", TREE)
    row["annotations"] = ASKED | row.get("annotations", {})
    node.create("web", **row)

    assert node.isolated() == expected


def test_a_container_without_a_request_is_not_isolated() -> None:
    node = Node("TopologyAwarePolicy", TREE)
    node.create("web", guaranteed=2)

    assert node.isolated() == {}


def test_balloons_isolate_a_container_alone_in_one() -> None:
    node = Node("BalloonsPolicy", BALLOONS)
    for name in ("web", "db", "one", "two"):
        node.create(name, guaranteed=1, annotations=ASKED)
    before = node.isolated()
    node.state = node.policy.decide(node.state, Stopped("one")).state

    assert before.keys() == {"web", "db"}
    assert node.isolated().keys() == {"web", "db", "two"}


def test_nothing_is_isolated_where_nothing_is_pinned() -> None:
    node = Node("TopologyAwarePolicy", TREE + "\npinCPU: false")
    node.create("web", guaranteed=2, annotations=ASKED)

    assert node.isolated() == {}
