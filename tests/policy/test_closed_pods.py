"""Places of a pod that has stopped are not offered to later containers."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.events import ContainerSpec, Created, PodStopped, Stopped
from nri_resmgr.policy.rules import Rule
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import MilliCpus, QosClass
from tests.policy.stories import KINDS, policy_of

MACHINE = parse_spec("1s1n4c1t")
CPU = MilliCpus(1000)
SPEC = {"reservedResources": {"cpu": "cpuset:0"}}


# Without places of their own there are no former ones.
@pytest.mark.parametrize(
    "kind",
    sorted(
        {*KINDS.values()} - {"NonePolicy", "DynamicPoolsPolicy", "StaticPoolsPolicy"}
    ),
)
def test_places_of_a_closed_pod_are_dropped(kind: str) -> None:
    policy = policy_of(kind, SPEC, MACHINE)
    guaranteed = ContainerSpec(
        id="c",
        pod="pod",
        slot="app",
        name="app",
        namespace="default",
        qos=QosClass.GUARANTEED,
        request=CPU,
        limit=CPU,
    )
    there = policy.decide(policy.start(), Created(guaranteed)).state

    successor = Created(msgspec.structs.replace(guaranteed, id="d"))

    stopped = policy.decide(there, Stopped("c")).state
    closed = policy.decide(there, PodStopped("pod")).state

    assert policy.decide(stopped, successor).reasons[0].rule is Rule.OLD_PLACE
    assert policy.decide(closed, successor).reasons[0].rule is not Rule.OLD_PLACE
