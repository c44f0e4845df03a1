"""What policies want of the host for their CPUs, and what they cannot have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nri_resmgr.classes.irq.requests import (
    BalloonCpus,
    ContainerCpus,
    IrqAffinity,
    IrqMode,
    IrqRule,
)
from nri_resmgr.policy.events import Stopped
from nri_resmgr.values import CpuSet, PolicyError
from tests.policy.policy_node import PolicyNode

MACHINE = "1s8c1t memory=16Gi isolated=6"
KEY = "cpu-class.resource-policy.nri.io"
IRQ = "irq-affinity.resource-policy.nri.io"
AFFINITY = IrqAffinity(("eth*",), (), claim_first=True)

TREE = """
availableResources: {cpu: "cpuset:0-6"}
reservedResources: {cpu: "cpuset:0"}
cpuClasses: [{name: fast}, {name: quiet}, {name: house}]
sharedPoolCPUClass: quiet
"""
BALLOONS = """
availableResources: {cpu: "cpuset:0-6"}
reservedResources: {cpu: "cpuset:0"}
cpuClasses: [{name: fast}, {name: slow}]
balloonTypes:
- {name: quick, cpus: "2-3", cpuClass: fast}
- {name: plain, cpus: "4"}
"""


class Node(PolicyNode):
    """A node of which one CPU is isolated."""

    def __init__(self, kind: str, spec: str) -> None:
        super().__init__(MACHINE, kind, spec)

    def classes(self) -> Mapping[str, str]:
        found = self.policy.host_use(self.state).cpu_classes
        return {name: str(cpus) for name, cpus in found.items()}


@pytest.mark.parametrize(
    ("more", "annotations", "expected"),
    [
        pytest.param(
            "",
            {},
            {"quiet": "0-6"},
            id="own CPUs without a class are as those of the shared pool",
        ),
        pytest.param(
            "defaultExclusiveCPUClass: fast",
            {},
            {"fast": "1-2", "quiet": "0,3-6"},
            id="a class for own CPUs",
        ),
        pytest.param(
            "defaultExclusiveCPUClass: fast",
            {f"{KEY}/container.a": "house"},
            {"house": "1-2", "quiet": "0,3-6"},
            id="an annotation counts more",
        ),
        pytest.param(
            "reservedPoolCPUClass: house",
            {f"{KEY}/pod": "fast"},
            {"fast": "1-2", "house": "0", "quiet": "3-6"},
            id="a class for the reserved CPUs, and one for a pod",
        ),
        pytest.param("pinCPU: false", {}, {}, id="nothing is pinned, nothing is set"),
    ],
)
def test_classes_of_own_shared_and_reserved_cpus(
    more: str, annotations: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    node = Node("TopologyAwarePolicy", TREE + more)
    node.create("a", guaranteed=2, annotations=dict(annotations))
    node.create("b", burstable=1)

    assert node.classes() == expected


def test_released_cpus_go_back_to_the_class_of_the_shared_pool() -> None:
    node = Node("TopologyAwarePolicy", f"{TREE}defaultExclusiveCPUClass: fast")
    node.create("a", guaranteed=2)

    node.state = node.policy.decide(node.state, Stopped("a")).state

    assert node.classes() == {"quiet": "0-6"}


@pytest.mark.parametrize(
    ("row", "key", "why"),
    [
        pytest.param(
            {"guaranteed": 2},
            f"{KEY}/pod",
            "default/pod-of-a/a: annotation cpu-class.resource-policy.nri.io/pod asks "
            "for CPU class swift, expected fast or quiet or house",
            id="a class that is not there",
        ),
        pytest.param(
            {"burstable": 2},
            f"{KEY}/container.a",
            "requires exclusive CPUs; the container is Burstable; ",
            id="a container that is not Guaranteed",
        ),
        pytest.param(
            {"guaranteed": "500m"},
            f"{KEY}/container.a",
            "requires exclusive CPUs; the container shares its CPUs; to help, ask",
            id="a container that shares its CPUs",
        ),
    ],
)
def test_a_class_that_a_container_cannot_have_is_refused(
    row: dict[str, Any], key: str, why: str
) -> None:
    node = Node("TopologyAwarePolicy", TREE)
    name = "swift" if key.endswith("/pod") else "fast"

    with pytest.raises(PolicyError) as error:
        node.create("a", **row, annotations={key: name})

    assert why in str(error.value)


WHOLE = "ask for whole CPUs with equal requests and limits"
BARE = "remove the annotation"


@pytest.mark.parametrize(
    ("others", "row", "helps"),
    [
        pytest.param(0, {"guaranteed": "500m"}, (WHOLE, BARE), id="both help"),
        pytest.param(5, {"guaranteed": "500m"}, (BARE,), id="no whole CPU is free"),
    ],
)
def test_the_advice_of_a_refused_class_is_accepted(
    others: int, row: dict[str, Any], helps: tuple[str, ...]
) -> None:
    def node() -> Node:
        made = Node("TopologyAwarePolicy", TREE)
        for number in range(others):
            made.create(f"other-{number}", guaranteed=1)
        if others:
            made.create("log", burstable="500m")
        return made

    annotations = {f"{KEY}/container.a": "fast"}
    with pytest.raises(PolicyError) as error:
        node().create("a", **row, annotations=annotations)

    assert str(error.value).endswith(f"; to help, {', or '.join(helps)}")
    node().create("a", **row)
    if WHOLE in helps:
        node().create("a", guaranteed=1, annotations=annotations)
    else:
        with pytest.raises(PolicyError):
            node().create("a", guaranteed=1, annotations=annotations)


def test_a_class_for_the_whole_pod_does_not_depend_on_shared_cpus() -> None:
    node = Node("TopologyAwarePolicy", TREE)
    node.create("a", burstable=1, annotations={f"{KEY}/pod": "fast"})

    assert node.classes() == {"quiet": "0-6"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param("", {"fast": "2-3"}, id="a class of a balloon type"),
        pytest.param(
            "idleCPUClass: slow",
            {"fast": "2-3", "slow": "0-1,4-6"},
            id="a class for all CPUs whose type names none",
        ),
        pytest.param("pinCPU: false", {}, id="nothing is pinned, nothing is set"),
    ],
)
def test_classes_of_balloons(more: str, expected: Mapping[str, str]) -> None:
    assert Node("BalloonsPolicy", BALLOONS + more).classes() == expected


def test_the_class_grows_with_the_balloon() -> None:
    spec = """
reservedResources: {cpu: "cpuset:0"}
idleCPUClass: slow
cpuClasses: [{name: fast}, {name: slow}]
balloonTypes: [{name: web, namespaces: [default], cpuClass: fast, maxBalloons: 1}]
"""
    node = Node("BalloonsPolicy", spec)
    node.create("a", burstable=2)
    before = {name: len(cpus) for name, cpus in node_classes(node).items()}
    node.create("b", burstable=3)
    after = {name: len(cpus) for name, cpus in node_classes(node).items()}

    assert (before, after) == ({"fast": 2, "slow": 6}, {"fast": 5, "slow": 3})


def node_classes(node: Node) -> Mapping[str, Any]:
    return node.policy.host_use(node.state).cpu_classes


@pytest.mark.parametrize(
    ("row", "key", "expected"),
    [
        pytest.param(
            {"guaranteed": 2},
            f"{IRQ}/container.a",
            (ContainerCpus(CpuSet.parse("1-2"), AFFINITY),),
            id="a container with CPUs of its own",
        ),
        pytest.param(
            {"burstable": 2}, f"{IRQ}/pod", (), id="another one of the same pod"
        ),
    ],
)
def test_interrupts_of_containers(
    row: dict[str, Any], key: str, expected: tuple[ContainerCpus, ...]
) -> None:
    node = Node("TopologyAwarePolicy", TREE)
    node.create("a", **row, annotations={key: "{claim: [eth*], mode: claim-first}"})
    use = node.policy.host_use(node.state)

    assert (use.containers, use.available) == (expected, CpuSet.parse("0-6"))


def test_interrupts_of_containers_without_exclusive_cpus_are_refused() -> None:
    node = Node("TopologyAwarePolicy", TREE)

    with pytest.raises(PolicyError, match=r"irq-affinity.* is Burstable"):
        node.create("a", burstable=1, annotations={f"{IRQ}/container.a": "{claim: []}"})


def test_interrupts_of_balloons_count_once_there_is_another_in_them() -> None:
    spec = """
reservedResources: {cpu: "cpuset:0"}
balloonTypes:
- {name: web, namespaces: [default], cpus: 2-3, irqClaim: [eth*], irqMode: isolate}
- {name: sink, cpus: "4", irqMode: sink}
"""
    node = Node("BalloonsPolicy", spec)
    before = node.policy.host_use(node.state).balloons
    node.create("a", burstable=1)
    rule = IrqRule(("eth*",), IrqMode.ISOLATE)

    assert before == ()
    assert node.policy.host_use(node.state).balloons == (
        BalloonCpus(CpuSet.parse("2-3"), rule),
    )


def test_the_static_policy_leaves_the_host_alone() -> None:
    node = Node("StaticPolicy", "{}")

    assert node.classes() == {}
