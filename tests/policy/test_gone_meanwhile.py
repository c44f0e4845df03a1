"""Containers that are gone at a synchronization leave their places to successors."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.events import ContainerSpec, Created, Synchronized
from nri_resmgr.policy.rules import Rule
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import MilliCpus, QosClass
from tests.policy.stories import policy_of

MACHINE = parse_spec("1s1n4c1t")
SPEC = {"reservedResources": {"cpu": "cpuset:0"}}
GONE = ContainerSpec(
    id="c",
    pod="pod",
    slot="app",
    name="app",
    namespace="default",
    qos=QosClass.GUARANTEED,
    request=MilliCpus(1000),
    limit=MilliCpus(1000),
)


@pytest.mark.parametrize(
    "kind",
    ["BalloonsPolicy", "StaticPlusPolicy", "StaticPolicy", "TopologyAwarePolicy"],
)
@pytest.mark.parametrize("is_running", [False, True])
def test_a_successor_returns_as_long_as_the_pod_exists(
    kind: str, *, is_running: bool
) -> None:
    policy = policy_of(kind, SPEC, MACHINE)
    there = policy.decide(policy.start(), Created(GONE)).state
    pods = frozenset({GONE.pod}) if is_running else frozenset()
    after = policy.decide(there, Synchronized((), pods=pods)).state
    successor = Created(msgspec.structs.replace(GONE, id="d"))
    rule = policy.decide(after, successor).reasons[0].rule

    assert (rule is Rule.OLD_PLACE) is is_running
