from __future__ import annotations

import pytest

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.scheduling import (
    SchedulingClass,
    scheduling_of,
)
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.values import CpuSet, QosClass

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
def test_who_names_the_class(
    spec: ContainerSpec, chosen: SchedulingClass | None
) -> None:
    assert scheduling_of(spec, SETTINGS) == chosen
