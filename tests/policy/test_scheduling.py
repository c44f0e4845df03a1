from __future__ import annotations

import pytest
import yaml

from nri_resmgr.policy.events import ContainerSpec, Created, Started
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, QosClass
from nri_resmgr.values.scheduling import SchedulingClass, SchedulingPolicy
from tests.policy.stories import policy_of

FAST, SLOW, IDLE = (SchedulingClass(name=name) for name in ("fast", "slow", "idle"))
SETTINGS = TopologyAwareSettings(
    available=CpuSet.of(0, 1),
    reserved=CpuSet.of(0),
    scheduling_classes={one.name: one for one in (FAST, SLOW, IDLE)},
    namespace_scheduling={"jobs": "slow"},
    qos_scheduling={QosClass.BEST_EFFORT: "idle"},
)


def asking(
    name: str = "", namespace: str = "", qos: str = "Burstable"
) -> ContainerSpec:
    wish = Preferences(scheduling_class=name)
    return ContainerSpec("c", namespace=namespace, qos=QosClass(qos), preferences=wish)


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        pytest.param(asking(), None, id="nothing names a class"),
        pytest.param(asking(qos="BestEffort"), IDLE, id="the QoS class does"),
        pytest.param(
            asking(namespace="jobs", qos="BestEffort"),
            SLOW,
            id="the namespace before the QoS class",
        ),
        pytest.param(
            asking("fast", "jobs", "BestEffort"), FAST, id="the annotation before both"
        ),
        pytest.param(
            asking("none", "jobs", "BestEffort"),
            None,
            id="an annotation that names no class keeps all others away",
        ),
    ],
)
def test_the_class_follows_annotation_namespace_and_qos(
    spec: ContainerSpec, chosen: SchedulingClass | None
) -> None:
    assert SETTINGS.scheduling_of(spec) == chosen


CLASSES = """
schedulingClasses: [{name: fast, nice: 1, policy: other}, {name: slow}]
"""


@pytest.mark.parametrize("kind", ["BalloonsPolicy", "TopologyAwarePolicy"])
def test_the_class_is_reported_at_the_creation_and_at_the_start(kind: str) -> None:
    machine = parse_spec("1s1n4c1t")
    policy = policy_of(kind, yaml.safe_load(CLASSES), machine)
    created = policy.decide(policy.start(), Created(asking("fast")))

    started = policy.decide(created.state, Started("c"))
    unknown = policy.decide(created.state, Started("other"))

    fast = SchedulingClass(name="fast", policy=SchedulingPolicy.OTHER, nice=1)
    found = [one.scheduling for one in (created, started, unknown)]
    assert found == [fast, fast, None]
