"""Adjustments: reading, scopes, conflicts, and their effect on containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.read import MOST, read_adjustments
from nri_resmgr.app.classes.limits.values import adjusted_limits
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.plugin.changes.adjusting import adjust
from nri_resmgr.app.plugin.changes.corrected_requests import correct_requests
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.requests.kubelet import KubeletSource
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.kubelet.pod_cache import PodCache
from nri_resmgr.kubelet.pod_reader import read_pod
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import (
    ContainerSpec,
    Event,
    Pin,
    Rebalance,
    RequestOrigin,
    Updated,
)
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.stub.replies import CreateReply
from nri_resmgr.testing.kubelet.pods import container as made_container
from nri_resmgr.testing.kubelet.pods import pod as made_pod
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import PolicyError
from tests.examples import examples

MACHINE = parse_spec("2s2n4c2t")

POLICIES = {
    "TopologyAwarePolicy": "{reservedResources: {cpu: 750m}}",
    "BalloonsPolicy": "{reservedResources: {cpu: 1}, balloonTypes: "
    "[{name: a, namespaces: [default], minCPUs: 1}]}",
    "StaticPolicy": "{reservedResources: {cpu: 1}}",
    "StaticPlusPolicy": "{reservedResources: {cpu: 1}}",
    "StaticPoolsPolicy": "{pools: [{name: infra, cpuLists: [{cpus: 0}]}]}",
    "PodpoolsPolicy": "{pools: [{name: two, cpu: 2}]}",
    "DynamicPoolsPolicy": "{pools: [{name: shop, namespaces: [default]}]}",
    "NonePolicy": "{}",
}

SAMPLE = """\
- apiVersion: criresmgr.intel.com/v1alpha1
  kind: Adjustment
  metadata: {name: adjustment-1, namespace: kube-system, uid: u1, generation: 2}
  spec:
    scope:
    - nodes: [node-1, worker-*]
      containers:
      - {key: ":,:pod/name,name", operator: Matches, values: ["*:sidecar"]}
      - {key: name, operator: In, values: [a, b]}
    - nodes: [node-2]
    resources:
      requests: {cpu: 750m, memory: 500Mi}
      limits: {cpu: 1500m, memory: 750Mi}
    classes: {rdt: gold, blockio: fast}
    toptierLimit: 500Mi
  status: {nodes: {node-1: {errors: {}}}}
"""


def adjustment(name: str = "a", node: str = "n", **spec: Any) -> str:
    """Write one that applies everywhere unless its spec says otherwise."""
    document = {
        "apiVersion": "criresmgr.intel.com/v1alpha1",
        "kind": "Adjustment",
        "metadata": {"name": name},
        "spec": {"scope": [{"nodes": [node]}], **spec},
    }
    return yaml.safe_dump([document])


def test_the_sample_is_read() -> None:
    (found,) = read_adjustments(SAMPLE, "worker-7")

    assert (found.object.uid, found.object.generation, found.why) == ("u1", 2, "")
    one = found.adjustment
    assert one is not None
    assert (one.request, one.limit, one.memory_request, one.memory_limit) == (
        *(750, 1500),
        *(500 << 20, 750 << 20),
    )
    assert (one.rdt_class, one.blockio_class, one.top_tier_limit) == (
        *("gold", "fast"),
        500 << 20,
    )
    assert one.covers(ContainerSpec("1", pod_name="web", name="sidecar"))
    assert one.covers(ContainerSpec("1", pod_name="web", name="b"))
    assert not one.covers(ContainerSpec("1", pod_name="web", name="main"))


@pytest.mark.parametrize(
    ("node", "is_there", "everywhere"),
    [
        ("node-1", True, False),
        ("node-11", False, False),
        ("worker-", True, False),
        ("worker", False, False),
        ("node-2", True, True),
        ("", False, False),
    ],
)
def test_nodes_are_names_or_beginnings(
    node: str,
    is_there: bool,  # noqa: FBT001 - a column of the table
    everywhere: bool,  # noqa: FBT001 - as above
) -> None:
    (found,) = read_adjustments(SAMPLE, node)

    assert (found.adjustment is not None, found.why) == (is_there, "")
    assert found.adjustment is None or found.adjustment.everywhere is everywhere


def test_a_limit_alone_is_the_request() -> None:
    (found,) = read_adjustments(adjustment(resources={"limits": {"cpu": 2}}), "n")

    one = found.adjustment
    assert one is not None
    assert (one.request, one.limit, one.memory_request) == (2000, 2000, None)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"resources": {"requests": {"gpu": 1}}}, "$.spec.resources.requests.gpu"),
        (
            {"resources": {"requests": {"cpu": 3}, "limits": {"cpu": 2}}},
            "$.spec.resources.requests.cpu: exceeds $.spec.resources.limits.cpu",
        ),
        ({"toptierLimit": -1}, "$.spec.toptierLimit: bad quantity"),
        ({"scope": None, "class": {}}, "$.spec.class: unknown key"),
        (
            {"scope": [{"containers": [{"key": "x", "operator": "In"}]}]},
            "$.spec.scope[0].containers[0]: unknown key 'x'",
        ),
        ({"scope": [{"node": []}]}, "$.spec.scope[0].node: unknown key"),
    ],
)
def test_a_mistake_has_its_path(spec: dict[str, Any], why: str) -> None:
    (found,) = read_adjustments(adjustment(**spec), "n")

    assert found.adjustment is None
    assert found.why.startswith(why)


@pytest.mark.parametrize("text", ["{}", "a", "[1]", "[{}]", "- {metadata: {name: 1}}"])
def test_anything_but_a_list_of_objects_is_rejected(text: str) -> None:
    with pytest.raises(BadSetting):
        read_adjustments(text, "n")


def test_names_are_unique() -> None:
    with pytest.raises(BadSetting, match="two adjustments have the name 'a'"):
        read_adjustments(adjustment() + adjustment(), "n")


def test_more_for_one_node_than_it_can_use_are_rejected() -> None:
    text = "".join(adjustment(name=f"a{at}") for at in range(MOST + 1))

    assert len(read_adjustments(text, "other")) == MOST + 1
    with pytest.raises(BadSetting, match="201 adjustments are for this node"):
        read_adjustments(text, "n")


# The effect on containers.


def made(kind: str, *observers: DecisionObserver) -> ResourcePolicy:
    """Make a plugin without a runtime."""
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {POLICIES[kind]}\n"
    policy = ResourcePolicy(MACHINE, parse_config(text), observers=observers)
    policy.synchronize([], [])
    return policy


def pod(name: str, qos: str = "burstable") -> Pod:
    """Make a pod of a QoS class."""
    level = "kubepods" if qos == "guaranteed" else f"kubepods-{qos}"
    linux = LinuxPod(cgroup_parent=f"/kubepods.slice/{level}-pod{name}.slice")
    return Pod(id=f"pod-{name}", name=name, uid=name, namespace="default", linux=linux)


def container(name: str, cpus: float, memory: int = 1 << 30) -> Container:
    """Make the container of a pod, with a limit that is its request."""
    resources = LinuxResources(
        cpu=LinuxCpu(max(int(cpus * 1024), 2), int(cpus * 100_000), 100_000)
        if cpus
        else LinuxCpu(2),
        memory=LinuxMemory(limit=memory) if cpus else None,
    )
    return Container(
        id=name,
        pod_sandbox_id=f"pod-{name}",
        name="main",
        linux=LinuxContainer(resources=resources),
    )


def run(
    policy: ResourcePolicy, name: str, cpus: float, qos: str = "burstable"
) -> CreateReply | None:
    """Create and start a container."""
    created = policy.create_container(pod(name, qos), container(name, cpus))
    policy.start_container(pod(name, qos), container(name, cpus))
    return created


def spec_of(policy: ResourcePolicy, name: str) -> ContainerSpec:
    """Return a container as it is now."""
    return policy.state.ledger.entries[name].spec


def read(text: str, node: str = "n") -> list[Adjustment]:
    """Read adjustments that have no mistakes."""
    found = read_adjustments(text, node)
    assert not [one.why for one in found if one.why]
    return [one.adjustment for one in found if one.adjustment is not None]


def of_pods(*names: str) -> list[dict[str, Any]]:
    """Write a scope of pods."""
    return [
        {"containers": [{"key": "pod/name", "operator": "In", "values": list(names)}]}
    ]


MORE = {"requests": {"cpu": "3", "memory": "2Gi"}, "limits": {"cpu": "3"}}


@pytest.mark.parametrize("kind", POLICIES)
def test_amounts_are_overridden_in_every_policy_and_restored(kind: str) -> None:
    policy = made(kind)
    run(policy, "web", 1)
    run(policy, "db", 1)
    before = policy.state.ledger.entries
    found = read(adjustment(scope=of_pods("web"), resources=MORE))

    judged = adjust(policy, found)

    assert (judged.errors, judged.applied) == ({}, {"web": "a"})
    web = spec_of(policy, "web")
    assert (web.request, web.limit, web.memory_request, web.memory_limit) == (
        *(3000, 3000),
        *(2 << 30, 2 << 30),
    )
    assert web.origin == "adjustment a"
    assert spec_of(policy, "db") == before["db"].spec

    adjust(policy, [])

    assert spec_of(policy, "web") == before["web"].spec


def test_a_shared_container_gets_room_for_its_adjusted_request() -> None:
    policy = made("StaticPolicy")
    run(policy, "web", 1.5, "guaranteed")

    adjust(policy, read(adjustment(resources={"limits": {"cpu": "2"}})))

    wanted = policy.wanted("web")
    assert wanted is not None
    assert len(wanted.cpus) == 2


class Events(DecisionObserver):
    """Notes the events that are decided."""

    def __init__(self) -> None:
        self.found: list[Event] = []

    def decided(self, event: Event, _decision: PolicyDecision) -> None:
        self.found.append(event)


@pytest.mark.parametrize("kind", POLICIES)
def test_containers_move_to_better_places_once_others_are_adjusted(kind: str) -> None:
    events = Events()
    policy = made(kind, events)
    run(policy, "web", 1)
    found = read(adjustment(resources=MORE))
    policy.observers.finish()
    events.found.clear()

    adjust(policy, found)
    policy.observers.finish()
    changed = list(map(type, events.found))
    adjust(policy, found)
    policy.observers.finish()

    # Whatever moves is decided after what is adjusted, and only if that has changed.
    assert changed == [Updated, Rebalance][: 1 + policy.policy.rebalances]
    assert list(map(type, events.found)) == changed


def test_a_new_container_is_adjusted_from_its_creation() -> None:
    policy = made("TopologyAwarePolicy")
    adjust(policy, read(adjustment(resources=MORE)))

    reply = run(policy, "web", 1)

    assert reply is not None
    assert reply.adjustment is not None
    resources = reply.adjustment.resources
    assert resources.cpu is not None
    assert resources.memory is not None
    assert (resources.cpu.quota, resources.cpu.period) == (300_000, 100_000)
    assert resources.memory.limit == 2 << 30
    assert spec_of(policy, "web").origin == "adjustment a"


def test_a_resize_changes_what_is_restored_later() -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    adjust(policy, read(adjustment(resources=MORE)))

    updates = policy.update_container(
        pod("web"),
        container("web", 1),
        LinuxResources(cpu=LinuxCpu(2048, 200_000, 100_000)),
    )
    adjusted = spec_of(policy, "web")
    adjust(policy, [])

    (own,) = [one for one in updates if one.container_id == "web"]
    assert own.resources.cpu is not None
    assert own.resources.cpu.quota == 300_000
    assert (adjusted.request, adjusted.adjusted and adjusted.adjusted.request) == (
        *(3000, 2000),
    )
    assert spec_of(policy, "web").request == 2000


def test_conflicting_adjustments_change_nothing() -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    run(policy, "db", 1)
    adjust(policy, read(adjustment("old", scope=of_pods("web"), resources=MORE)))
    before = policy.state
    two = adjustment("b", scope=of_pods("web", "db"), resources=MORE) + adjustment(
        "a", scope=of_pods("db")
    )

    judged = adjust(policy, read(two))

    assert judged.errors == {"db": "cache: conflicting adjustments for db:main: a,b"}
    assert judged.involved == {"db": ("a", "b")}
    assert policy.state is before
    run(policy, "new", 1)
    assert spec_of(policy, "new").adjusted is None


def test_best_effort_containers_have_no_amounts_to_adjust() -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 0, "besteffort")

    judged = adjust(policy, read(adjustment(resources=MORE)))
    classes = adjust(policy, read(adjustment(classes={"rdt": "gold"})))

    assert judged.errors == {
        "web": "cache: can't adjust resources of BestEffort container web:main: a"
    }
    assert classes.errors == {}
    request = spec_of(policy, "web").preferences.rdt_class
    assert request is not None
    assert (request.name, request.by_adjustment) == ("gold", True)


def test_adjustments_that_do_not_fit_change_nothing() -> None:
    policy = made("StaticPolicy")
    run(policy, "web", 1, "guaranteed")
    run(policy, "db", 1, "guaranteed")
    before = policy.state
    huge = {"limits": {"cpu": "20"}}

    judged = adjust(
        policy, read(adjustment(scope=of_pods("web", "db"), resources=huge))
    )

    assert list(judged.errors) in (["web"], ["db"])
    assert "free" in next(iter(judged.errors.values()))
    assert policy.state is before


@pytest.mark.parametrize(
    "again", [None, [], ["other"]], ids=["unknown", "gone", "others"]
)
def test_a_restart_keeps_or_restores_what_was_adjusted(again: list[str] | None) -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    own = spec_of(policy, "web")
    found = read(adjustment(resources=MORE))
    adjust(policy, found)
    adjusted = spec_of(policy, "web")
    # The runtime's record has the limits that were sent to it.
    record = container("web", 3, 2 << 30)

    reborn = made("TopologyAwarePolicy")
    reborn.engine.restore_from(lambda _: policy.state)
    others = read(adjustment("other", scope=of_pods("db"), resources=MORE))
    reborn.specs.adjustments.begin(None if again is None else others if again else [])
    reborn.synchronize([pod("web")], [record])

    # The limits in the container's cgroup are those that the first process has set.
    assert reborn.class_hosts.limits.applied == {"web": adjusted_limits(adjusted)}
    now = spec_of(reborn, "web")
    expected = adjusted if again is None else own
    assert (now.request, now.limit, now.memory_limit, now.source) == (
        *(expected.request, expected.limit),
        *(expected.memory_limit, expected.source),
    )
    adjust(reborn, [])
    assert spec_of(reborn, "web").request == own.request


def test_the_kubelet_knows_what_was_adjusted_before_a_start_without_a_checkpoint() -> (
    None
):
    policy, cache = made("TopologyAwarePolicy"), PodCache()
    source = KubeletSource(cache)
    policy.specs.use_requests(source)
    policy.specs.adjustments.begin(read(adjustment(resources=MORE)))
    # As the runtime reports one of 1 CPU without limits that was adjusted.
    policy.synchronize([pod("web")], [container("web", 3, 2 << 30)])
    assert spec_of(policy, "web").own_source is RequestOrigin.OCI

    amounts = {"cpu": "1", "memory": "1Gi"}
    found = read_pod(
        made_pod("web", made_container("main", amounts)).SerializeToString()
    )
    assert found is not None
    cache.put(found)
    correct_requests(policy, source.sandboxes("web"))

    known = spec_of(policy, "web")
    assert known.adjusted is not None
    assert (known.own_source, known.limit) == (RequestOrigin.KUBELET, 3000)
    assert (known.adjusted.request, known.adjusted.limit) == (1000, None)
    adjust(policy, [])
    assert spec_of(policy, "web").limit is None


def test_conflicts_at_a_restart_leave_what_was_adjusted() -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    adjust(policy, read(adjustment(resources=MORE)))

    reborn = made("TopologyAwarePolicy")
    reborn.engine.restore_from(lambda _: policy.state)
    two = read(adjustment("a", resources=MORE) + adjustment("b"))
    reborn.specs.adjustments.begin(two)
    reborn.synchronize([pod("web")], [container("web", 3, 2 << 30)])

    assert spec_of(reborn, "web").request == 3000
    assert list(adjust(reborn, two).errors) == ["web"]


AMOUNTS = st.sampled_from(["100m", "750m", "1", "2", "3", "6"])
RESOURCES = st.builds(
    lambda cpu, memory: {
        "requests": {"cpu": cpu},
        "limits": {"cpu": cpu} | ({"memory": memory} if memory else {}),
    },
    AMOUNTS,
    st.sampled_from(["", "64Mi", "1Gi"]),
)


def legal(policy: ResourcePolicy, names: Mapping[str, float]) -> None:
    """Check that CPUs exist, and that exclusive ones are one container's alone."""
    pins: dict[str, Pin] = {}
    for name in names:
        pin = policy.wanted(name)
        assert pin is not None
        assert pin.cpus <= MACHINE.online
        pins[name] = pin
    exclusive = policy.policy.exclusive_cpus(policy.state)
    for name, cpus in exclusive.items():
        for other, pin in pins.items():
            assert other == name or pin.cpus.isdisjoint(cpus)


@examples(0.5)
@given(
    kind=st.sampled_from(sorted(POLICIES)),
    cpus=st.lists(st.sampled_from([0.25, 1.0, 1.5, 2.0]), min_size=1, max_size=5),
    sets=st.lists(st.dictionaries(st.integers(0, 4), RESOURCES), max_size=4),
    guaranteed=st.booleans(),
)
def test_any_adjustments_leave_legal_grants_and_are_undone(
    *,
    kind: str,
    cpus: list[float],
    sets: list[dict[int, Any]],
    guaranteed: bool,
) -> None:
    policy = made(kind)
    names: dict[str, float] = {}
    for number, amount in enumerate(cpus):
        name = f"c{number}"
        try:
            run(policy, name, amount, "guaranteed" if guaranteed else "burstable")
        except PolicyError:
            continue
        names[name] = amount
    own = {name: spec_of(policy, name) for name in names}
    for found in sets:
        text = "".join(
            adjustment(f"a{number}", scope=of_pods(f"c{number}"), resources=resources)
            for number, resources in found.items()
        )
        before = policy.state
        judged = adjust(policy, read(text) if text else [])
        if judged.errors:
            assert policy.state is before
        for name in names:
            number = int(name[1:])
            adjusted = spec_of(policy, name).adjusted
            if not judged.errors:
                assert (adjusted is not None) == (number in found)
        legal(policy, names)

    last = adjust(policy, [])

    legal(policy, names)
    if not last.errors:
        assert {name: spec_of(policy, name) for name in names} == own
