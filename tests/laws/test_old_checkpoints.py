"""However old its checkpoint is, a new process leaves containers where they run."""

from __future__ import annotations

from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, QosClass
from tests.laws.histories import History, policy_of
from tests.topology.odd_machines import Oddities, odd_series

# Before and after parts of it go offline, or come.
MACHINES: Final = (
    ("1s4n4c1t memory=4Gi", "1s4n4c1t memory=4Gi offline=5,9"),
    ("2s1n4c2t memory=8Gi", "2s1n4c2t memory=8Gi offline=3,11"),
    ("2s2n2c2t memory=4Gi", "2s2n2c2t memory=2Gi,4Gi"),
    ("1s2n4c1t l3=2 memory=4Gi", "1s2n4c1t l3=2 memory=6Gi"),
    ("4s4c1t around=2 memory=4Gi", "4s4c1t around=2 memory=4Gi offline=5,9"),
    ("1s2n4c1t emulated=2 memory=8Gi", "1s2n4c1t emulated=2 memory=8Gi offline=5"),
)

_RESERVED: Final = "reservedResources: {cpu: 'cpuset:0'}"
_LISTS: Final = (
    "[{name: x, exclusive: true, cpuLists: [{cpus: '1'}, {cpus: '2-3'}]},"
    " {name: shared, cpuLists: [{cpus: '4'}, {cpus: '6-7'}]}]"
)
_OWN_TYPES: Final = (
    f"{{{_RESERVED}, balloonTypes: ["
    "{name: a, preferNewBalloons: true}, {name: b, minCPUs: 1, maxCPUs: 4}]}"
)
_SPREAD_TYPES: Final = (
    f"{{{_RESERVED}, balloonTypes: [{{name: a, preferPerNamespaceBalloon: true}}, "
    "{name: b, minBalloons: 1, minCPUs: 2, preferSpreadingPods: true}]}"
)
DOCUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "TopologyAwarePolicy": (
        f"{{{_RESERVED}}}",
        f"{{{_RESERVED}, colocatePods: true}}",
        f"{{{_RESERVED}, onFailure: shared}}",
    ),
    "BalloonsPolicy": (
        f"{{{_RESERVED}, balloonTypes: [{{name: a}}]}}",
        _OWN_TYPES,
        _SPREAD_TYPES,
    ),
    "StaticPolicy": (f"{{{_RESERVED}}}",),
    "StaticPlusPolicy": (f"{{{_RESERVED}}}",),
    "PodpoolsPolicy": (
        f"{{{_RESERVED}, pools: [{{name: p, cpu: 1, instances: 2, maxPods: 2}}]}}",
    ),
    "StaticPoolsPolicy": (f"{{pools: {_LISTS}}}",),
    "DynamicPoolsPolicy": (
        f"{{{_RESERVED}, pools: [{{name: web, namespaces: [web]}}, {{name: db}}]}}",
    ),
}
# What the documents ask for is there.
SMALL: Final = Oddities(least=4, ordinary=CpuSet.parse("0-3"))
NAMED: Final = {"StaticPoolsPolicy": Oddities(least=8, ordinary=CpuSet.parse("0-7"))}
AGES: Final = (0, 1, 2, 3, 5, 8, 12, 20, 50)


@st.composite
def amounts(draw: st.DrawFn, qos: QosClass) -> dict[str, Any]:
    """Draw what a container asks for."""
    if qos is QosClass.BEST_EFFORT:
        return {}
    whole = st.sampled_from([1000, 2000, 3000, 5000])
    request = MilliCpus(draw(whole | st.sampled_from([500, 200, 1500, 2500])))
    memory = Bytes(draw(st.sampled_from([0, 0, 1, 3])) << 30)
    if qos is QosClass.GUARANTEED:
        limits = {"limit": request, "memory_limit": memory or None}
        return {"request": request, "memory_request": memory, **limits}
    return {"request": request, "memory_request": memory}


@st.composite
def containers(draw: st.DrawFn, number: int) -> ContainerSpec:
    """Draw a container, the *number*-th event; its pod has another one perhaps."""
    qos = draw(st.sampled_from(QosClass))
    preferences = Preferences(
        balloon=draw(st.sampled_from(["", "", "a", "b"])),
        dynamic_pool=draw(st.sampled_from(["", "db"])),
        pod_pool="p" if number % 4 < 2 else "",
    )
    return ContainerSpec(
        id=f"c{number}",
        pod=f"p{number // 2}",
        namespace=draw(st.sampled_from(["default", "web"])),
        qos=qos,
        created=number,
        preferences=preferences,
        **draw(amounts(qos)),
    )


STEPS: Final = st.sampled_from(
    [*["create"] * 6, *["resize"] * 4, *["stop"] * 2, "switch", "die"]
)


def go_on(history: History, kind: str, data: st.DataObject) -> None:
    """Draw an event of a node that began under the policy of a kind."""
    draw, step = data.draw, data.draw(STEPS)
    if step == "switch":
        other = draw(st.sampled_from(["NonePolicy", kind, kind]))
        spec = draw(st.sampled_from(DOCUMENTS.get(other, ("{}",))))
        machine = draw(st.sampled_from(history.machines))
        history.switch(policy_of(other, spec, machine))
    elif step == "die":
        history.die(draw(st.integers(0, 50)))
    elif step == "create" or not history.there:
        history.create(draw(containers(len(history.events))))
    else:
        container = draw(st.sampled_from(sorted(history.there)))
        if step == "stop":
            history.stop(container)
        else:
            history.resize(container, draw(amounts(history.there[container].qos)))


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_everybody_stays_however_old_the_checkpoint_is(
    kind: str, data: st.DataObject
) -> None:
    drawn = odd_series(NAMED.get(kind, SMALL))
    machines = data.draw(drawn | st.sampled_from(MACHINES))
    spec = data.draw(st.sampled_from(DOCUMENTS[kind]))
    lags = data.draw(st.booleans())
    history = History(policy_of(kind, spec, machines[0]), machines, by_partition=lags)
    for _ in range(data.draw(st.integers(1, 20))):
        go_on(history, kind, data)

    check_restarts(history)


def check_restarts(history: History) -> None:
    """Check that none moves, whatever a checkpoint lacks, and none is refused."""
    policy, alone = history.policy, history.policy.exclusive_cpus(history.state)
    for age in AGES:
        after = history.restart(age)
        lines = "\n".join((*history.events, f"{age} decisions are lost"))
        assert not after.refused, lines
        assert history.crowded or after.pins == history.pins, lines
        assert alone.items() <= policy.exclusive_cpus(after.state).items(), lines


def guaranteed(request: int) -> dict[str, Any]:
    """Return amounts of a Guaranteed container."""
    return {"request": MilliCpus(request), "limit": MilliCpus(request)}


def one(name: str, request: int) -> ContainerSpec:
    """Return a Guaranteed container in a pod of its own."""
    amounts = guaranteed(request)
    return ContainerSpec(id=name, pod=name, qos=QosClass.GUARANTEED, **amounts)


def test_a_balloon_that_moved_on_stays_where_it_is() -> None:
    history = History(
        policy_of("BalloonsPolicy", DOCUMENTS["BalloonsPolicy"][0], "1s4n4c1t")
    )
    history.create(one("web", 1000))
    history.create(one("db", 3000))
    history.stop("db")
    history.resize("web", guaranteed(2000))
    history.resize("web", guaranteed(1000))

    check_restarts(history)


def test_a_container_that_shrank_twice_keeps_its_cpu() -> None:
    history = History(policy_of("TopologyAwarePolicy", "{}", "1s4n4c1t"))
    history.create(one("web", 5000))
    history.resize("web", guaranteed(4000))
    history.resize("web", guaranteed(1000))

    check_restarts(history)


def test_cpus_that_a_resize_left_are_those_of_the_next_container() -> None:
    history = History(policy_of("TopologyAwarePolicy", "{}", "1s4n4c1t"))
    history.create(one("web", 5000))
    history.create(one("log", 500))
    history.resize("web", guaranteed(3000))
    history.create(one("db", 2000))

    check_restarts(history)


def test_a_resize_that_nobody_decided_is_decided_at_the_start() -> None:
    history = History(policy_of("TopologyAwarePolicy", "{}", "1s4n4c1t"))
    history.create(one("web", 2000))
    history.create(one("log", 2000))
    before = dict(history.pins)
    history.there["web"] = one("web", 3000)
    history.there["log"] = one("log", 1000)
    after = history.restart(0)

    assert before["web"].cpus < after.pins["web"].cpus
    assert after.pins["log"].cpus < before["log"].cpus
    assert [len(after.pins[key].cpus) for key in ("web", "log")] == [3, 1]


def test_one_that_overflowed_to_reserved_cpus_keeps_its_exclusive_one() -> None:
    spec = DOCUMENTS["StaticPlusPolicy"][0]
    history = History(policy_of("StaticPlusPolicy", spec, "1s2n4c1t"))
    # Of equal age, so that their names have the order in which they overflow.
    history.create(one("api", 1000))
    history.create(one("batch", 3000))
    history.resize("api", guaranteed(500))
    history.create(one("bus", 500))
    history.create(one("db", 1500))
    history.create(one("dns", 2000))

    check_restarts(history)
