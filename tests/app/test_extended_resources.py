"""Extended resources of a node, by the policies that grant them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.app.offers.extended_resources import (
    EXCLUSIVE_CPUS,
    EXCLUSIVE_LISTS,
    PolicyNow,
    amounts_of,
)
from nri_resmgr.app.offers.node_features import features_of
from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import ContainerSpec, Created, RequestOrigin, Stopped
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import MilliCpus, PolicyError, QosClass

BY_STATUS: Final = "publish: {exclusiveCPUs: true, by: node-status}"
POOLS: Final = """
    pools:
    - {name: exclusive, exclusive: true, cpuLists: [{cpus: 1}, {cpus: 2}, {cpus: 3}]}
    - {name: more, exclusive: true, cpuLists: [{cpus: "4-5"}]}
    - {name: infra, cpuLists: [{cpus: 6}]}
"""
BALLOONS: Final = """
    reservedResources: {cpu: 1}
    cpuClasses:
    - {name: turbo, pctPriority: high, publishExtendedResource: true}
    - {name: calm, pctPriority: low}
    balloonTypes:
    - {name: fast, cpuClass: turbo, maxCPUs: 3, maxBalloons: 1}
    - {name: slow, cpuClass: calm}
"""
CLASSES: Final = """
    reservedResources: {cpu: 1}
    cpuClasses:
    - {name: turbo, pctPriority: high, publishExtendedResource: true}
    - {name: calm, pctPriority: low}
    sharedPoolCPUClass: calm
"""


def lists_of(extended: Mapping[str, int]) -> str:
    """Return the variable that our device plugin writes."""
    count = extended.get(EXCLUSIVE_LISTS)
    return str(count) if count else ""


@attrs.define(eq=False)
class Node:
    """A policy with its state, on eight CPUs."""

    now: PolicyNow

    @classmethod
    def of(cls, kind: str, spec: str, machine: str = "1s2n4c1t") -> Node:
        found = parse_spec(machine)
        # Of one line, or a block.
        text = spec if "\n" in spec else f" {{{spec}}}"
        head = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec:"
        config = parse_config(f"{head}{text}\n")
        policy = build_policy(config, found)
        return cls(PolicyNow(config, found, policy, policy.start()))

    def create(
        self,
        name: str,
        cpus: float = 0,
        extended: Mapping[str, int] = {},
        pool: str = "",
        **more: Any,
    ) -> None:
        """Create a Guaranteed container, or a best-effort one without CPUs."""
        request = MilliCpus(int(cpus * 1000))
        spec = ContainerSpec(
            id=name,
            pod=name,
            name=name,
            title=name,
            qos=QosClass.GUARANTEED if cpus else QosClass.BEST_EFFORT,
            request=request,
            limit=request or None,
            extended=extended,
            pool_request=PoolRequest(pool, lists=lists_of(extended)),
            **more,
        )
        self._decide(Created(spec))

    def stop(self, name: str) -> None:
        self._decide(Stopped(name))

    def _decide(self, event: Created | Stopped) -> None:
        state = self.now.policy.decide(self.now.state, event).state
        self.now = replace(self.now, state=state)

    @property
    def amounts(self) -> dict[str, tuple[int, int]]:
        """Value and capacity by name."""
        return {one.name: (one.value, one.capacity) for one in amounts_of(self.now)}


@pytest.mark.parametrize("kind", ["StaticPolicy", "StaticPlusPolicy"])
def test_published_exclusive_cpus_can_be_granted_by_the_policy(kind: str) -> None:
    node = Node.of(kind, "reservedResources: {cpu: 1}, publish: {exclusiveCPUs: true}")
    most = node.amounts[EXCLUSIVE_CPUS][1]
    assert most in (6, 7)

    # A container that requests them is counted by the scheduler, not here.
    node.create("web", 2, {EXCLUSIVE_CPUS: 2})
    assert node.amounts == {EXCLUSIVE_CPUS: (most, most)}
    # One that does not leaves fewer.
    node.create("other", 3)
    assert node.amounts == {EXCLUSIVE_CPUS: (most - 3, most)}
    node.stop("web")
    assert node.amounts == {EXCLUSIVE_CPUS: (most - 3, most)}
    node.stop("other")
    assert node.amounts == {EXCLUSIVE_CPUS: (most, most)}


def test_cpus_that_sharers_need_are_not_offered() -> None:
    spec = "reservedResources: {cpu: 1}, publish: {exclusiveCPUs: true}"
    node = Node.of("TopologyAwarePolicy", spec)
    value, capacity = node.amounts[EXCLUSIVE_CPUS]

    for number in range(3):
        node.create(f"shared-{number}", 1.5)

    # They share the CPUs of the two memory nodes.
    assert node.amounts[EXCLUSIVE_CPUS][1] == capacity
    assert node.amounts[EXCLUSIVE_CPUS][0] < value


@pytest.mark.parametrize("kind", ["StaticPolicy", "TopologyAwarePolicy"])
def test_a_policy_that_takes_announced_pods_only_grants_as_many(kind: str) -> None:
    spec = "reservedResources: {cpu: 1}, publish: {exclusiveCPUs: true}"
    strict = Node.of(kind, f"{spec}, placePods: strict")

    assert strict.amounts == Node.of(kind, spec).amounts


def test_more_is_requested_than_granted_or_less() -> None:
    node = Node.of(
        "StaticPolicy", "reservedResources: {cpu: 1}, publish: {exclusiveCPUs: true}"
    )
    (_, most) = node.amounts[EXCLUSIVE_CPUS]

    # One CPU more than it has: the scheduler takes four away, the node three.
    node.create("greedy", 3, {EXCLUSIVE_CPUS: 4})
    assert node.amounts[EXCLUSIVE_CPUS] == (most, most)
    # One fewer.
    node.create("modest", 2, {EXCLUSIVE_CPUS: 1})
    assert node.amounts[EXCLUSIVE_CPUS] == (most - 1, most)


@pytest.mark.parametrize("source", RequestOrigin)
def test_in_the_status_of_the_node_an_unknown_request_counts(
    source: RequestOrigin,
) -> None:
    """The scheduler knows it, and takes it away from the number."""
    node = Node.of("StaticPolicy", f"reservedResources: {{cpu: 1}}, {BY_STATUS}")
    (_, most) = node.amounts[EXCLUSIVE_CPUS]

    node.create("web", 2, source=source)

    is_known = source is not RequestOrigin.OCI
    assert node.amounts[EXCLUSIVE_CPUS] == (most - 2 * is_known, most)
    assert amounts_of(node.now)[0].by == "node-status"


def test_lists_of_all_exclusive_pools_are_cmk_s_resource() -> None:
    node = Node.of("StaticPoolsPolicy", f"{POOLS}    publish: {{exclusiveCPUs: true}}")
    assert node.amounts == {EXCLUSIVE_LISTS: (4, 4)}

    node.create("dpdk", 1, {EXCLUSIVE_LISTS: 2}, pool="exclusive")
    node.create("any", 1, pool="infra")
    node.create("none", 1)
    assert node.amounts == {EXCLUSIVE_LISTS: (4, 4)}
    node.create("unasked", 1, pool="more")
    assert node.amounts == {EXCLUSIVE_LISTS: (3, 4)}
    node.stop("dpdk")
    assert node.amounts == {EXCLUSIVE_LISTS: (3, 4)}


def test_units_of_a_container_that_got_no_list_are_idle() -> None:
    node = Node.of("StaticPoolsPolicy", f"{POOLS}    publish: {{exclusiveCPUs: true}}")

    node.create("silent", 1, pool="more")
    node.create("wasteful", 1, {EXCLUSIVE_LISTS: 1}, pool="infra")

    assert node.amounts == {EXCLUSIVE_LISTS: (3, 4)}


def test_published_cpus_of_a_class_are_those_of_its_balloons() -> None:
    node = Node.of("BalloonsPolicy", BALLOONS)
    name = "cpuclass.balloons.nri.io/turbo"
    assert node.amounts == {name: (3, 3)}

    fast = Preferences(balloon="fast")
    node.create("asks", 1, {name: 1}, preferences=fast)
    assert node.amounts == {name: (3, 3)}
    node.create("silent", 1, preferences=fast)
    assert node.amounts == {name: (2, 3)}
    node.create("elsewhere", 2, preferences=Preferences(balloon="slow"))
    assert node.amounts == {name: (2, 3)}


def test_cpus_of_a_class_are_exclusive_ones() -> None:
    node = Node.of("TopologyAwarePolicy", CLASSES)
    name = "cpuclass.resource-policy.nri.io/turbo"
    ((value, most),) = node.amounts.values()
    assert (value, most) == (most, most)

    turbo = Preferences(cpu_class=ClassRequest("turbo"))
    node.create("asks", 2, {name: 2}, preferences=turbo)
    assert node.amounts == {name: (most, most)}
    node.create("calm", 1)
    assert node.amounts == {name: (most - 1, most)}


def test_an_rdt_class_has_as_many_containers_as_are_configured() -> None:
    node = Node.of(
        "NonePolicy",
        """
    control:
      rdt: {enable: true, partitions: {p: {classes: {gold: {}}}}}
    publish: {rdtClasses: [{name: gold, containers: 3}]}
""",
    )
    name = "rdtclass.resource-policy.nri.io/gold"
    gold = Preferences(rdt_class=ClassRequest("gold"))

    node.create("asks", 1, {name: 1}, preferences=gold)
    assert node.amounts == {name: (3, 3)}
    node.create("silent", 1, preferences=gold)
    node.create("other", 1)
    assert node.amounts == {name: (2, 3)}


def test_only_enabled_resources_are_published() -> None:
    spec = BALLOONS.replace(", publishExtendedResource: true", "")
    node = Node.of("BalloonsPolicy", spec)

    assert (amounts_of(node.now), node.now.config.publishes) == ((), False)
    assert Node.of("BalloonsPolicy", BALLOONS).now.config.publishes


def test_the_file_of_features_names_the_policy_its_classes_and_cpus() -> None:
    node = Node.of("TopologyAwarePolicy", CLASSES)
    before = features_of(node.now)
    node.create("web", 2)

    assert features_of(node.now) == before
    _, *rows = before.splitlines()
    most = node.amounts["cpuclass.resource-policy.nri.io/turbo"][1]
    assert rows == [
        "nri-resmgr.policy=TopologyAwarePolicy",
        f"nri-resmgr.exclusive-cpus={most}",
        "nri-resmgr.cpu-class.turbo=true",
        "nri-resmgr.cpu-class.calm=true",
    ]


@given(
    kind=st.sampled_from(["StaticPolicy", "StaticPlusPolicy", "TopologyAwarePolicy"]),
    machine=st.sampled_from(["1s1n2c1t", "1s2n4c1t", "2s1n2c2t", "1s1n8c1t"]),
    steps=st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from([0, 0.5, 1, 1, 2, 3])),
        max_size=8,
    ),
)
def test_as_many_cpus_can_be_granted_as_are_published(
    kind: str, machine: str, steps: list[tuple[str, float]]
) -> None:
    """Fill the node after random events: as many fit as the resource has left."""
    spec = "reservedResources: {cpu: 1}, publish: {exclusiveCPUs: true}"
    node = Node.of(kind, spec, machine)
    held: dict[str, int] = {}
    for name, cpus in steps:
        if name in held:
            node.stop(name)
            del held[name]
            continue
        try:
            node.create(name, cpus, {EXCLUSIVE_CPUS: int(cpus)})
        except PolicyError:
            continue
        own = node.now.policy.exclusive_parts(node.now.state)
        held[name] = min(len(own.get(name, ())), int(cpus))
    ((value, capacity),) = node.amounts.values()

    fitting = 0
    while True:
        try:
            node.create(f"filler-{fitting}", 1)
        except PolicyError:
            break
        own = node.now.policy.exclusive_parts(node.now.state)
        if not own.get(f"filler-{fitting}"):
            break
        fitting += 1

    assert 0 <= value <= capacity <= len(node.now.machine.online)
    assert value - sum(held.values()) == fitting
