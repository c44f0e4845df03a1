"""Documents and machines of all kinds of policy, and what happens to their nodes."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import hypothesis.strategies as st
import msgspec

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, QosClass
from tests.laws.histories import History, policy_of
from tests.topology.odd_machines import Oddities, odd_series

# Before and after parts of it go offline, or come.
_MACHINES: Final = (
    ("1s4n4c1t memory=4Gi", "1s4n4c1t memory=4Gi offline=5,9"),
    ("2s1n4c2t memory=8Gi", "2s1n4c2t memory=8Gi offline=3,11"),
    ("2s2n2c2t memory=4Gi", "2s2n2c2t memory=2Gi,4Gi"),
    ("1s2n4c1t l3=2 memory=4Gi", "1s2n4c1t l3=2 memory=6Gi"),
    ("4s4c1t around=2 memory=4Gi", "4s4c1t around=2 memory=4Gi offline=5,9"),
    ("1s2n4c1t emulated=2 memory=8Gi", "1s2n4c1t emulated=2 memory=8Gi offline=5"),
)

RESERVED: Final = "reservedResources: {cpu: 'cpuset:0'}"
_LISTS: Final = (
    "[{name: x, exclusive: true, cpuLists: [{cpus: '1'}, {cpus: '2-3'}]},"
    " {name: shared, cpuLists: [{cpus: '4'}, {cpus: '6-7'}]}]"
)
_OWN_TYPES: Final = (
    f"{{{RESERVED}, balloonTypes: ["
    "{name: a, preferNewBalloons: true}, {name: b, minCPUs: 1, maxCPUs: 4}]}"
)
_SPREAD_TYPES: Final = (
    f"{{{RESERVED}, balloonTypes: [{{name: a, preferPerNamespaceBalloon: true}}, "
    "{name: b, minBalloons: 1, minCPUs: 2, preferSpreadingPods: true}]}"
)
_SHARING_TYPES: Final = tuple(
    f"{{{RESERVED}, balloonTypes: [{{name: a, shareIdleCPUsInSame: {level}}}, "
    f"{{name: b, preferNewBalloons: true, shareIdleCPUsInSame: {other}}}]}}"
    for level, other in (("system", "numa"), ("package", "l2cache"), ("numa", "core"))
)
_COMPOSITE_TYPES: Final = (
    f"{{{RESERVED}, balloonTypes: [{{name: a, components: "
    "[{balloonType: b}, {balloonType: part}]}, {name: b}, {name: part}]}"
)
_BALANCED_TYPES: Final = (
    f"{{{RESERVED}, balloonTypes: [{{name: a, componentCreation: balance-balloons,"
    " components: [{balloonType: one}, {balloonType: two}], preferNewBalloons: true},"
    " {name: b, shareIdleCPUsInSame: system}, {name: one}, {name: two}]}"
)
DOCUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "TopologyAwarePolicy": (
        f"{{{RESERVED}}}",
        f"{{{RESERVED}, colocatePods: true}}",
        f"{{{RESERVED}, onFailure: shared}}",
    ),
    "BalloonsPolicy": (
        f"{{{RESERVED}, balloonTypes: [{{name: a}}]}}",
        _OWN_TYPES,
        _SPREAD_TYPES,
        *_SHARING_TYPES,
        _COMPOSITE_TYPES,
        _BALANCED_TYPES,
    ),
    "StaticPolicy": (f"{{{RESERVED}}}",),
    "StaticPlusPolicy": (f"{{{RESERVED}}}",),
    "PodpoolsPolicy": (
        f"{{{RESERVED}, pools: [{{name: p, cpu: 1, instances: 2, maxPods: 2}}]}}",
    ),
    "StaticPoolsPolicy": (f"{{pools: {_LISTS}}}",),
    "DynamicPoolsPolicy": (
        f"{{{RESERVED}, pools: [{{name: web, namespaces: [web]}}, {{name: db}}]}}",
    ),
}

# What the documents ask for is there.
_SMALL: Final = Oddities(least=4, ordinary=CpuSet.parse("0-3"))
_NAMED: Final = {"StaticPoolsPolicy": Oddities(least=8, ordinary=CpuSet.parse("0-7"))}


# Made once: Hypothesis checks each strategy that it has not seen before, which takes
# longer than to draw from it.
_QOS: Final = st.sampled_from(QosClass)
_WHOLE_CPUS: Final = st.sampled_from([1000, 2000, 3000, 5000])
_CPUS: Final = _WHOLE_CPUS | st.sampled_from([500, 200, 1500, 2500])
_MEMORY: Final = st.sampled_from([0, 0, 1, 3])
_BALLOONS: Final = st.sampled_from(["", "", "a", "b"])
_DYNAMIC_POOLS: Final = st.sampled_from(["", "db"])
_STATIC_POOLS: Final = st.sampled_from(["", "x"])
_NAMESPACES: Final = st.sampled_from(["default", "web"])


@cache
def machines_for(kind: str) -> st.SearchStrategy[tuple[str, ...]]:
    """Draw a machine for a kind's documents, and what it is after changes."""
    return odd_series(_NAMED.get(kind, _SMALL)) | st.sampled_from(_MACHINES)


@cache
@st.composite
def amounts(draw: st.DrawFn, qos: QosClass) -> dict[str, Any]:
    """Draw what a container asks for."""
    if qos is QosClass.BEST_EFFORT:
        return {}
    request, memory = MilliCpus(draw(_CPUS)), Bytes(draw(_MEMORY) << 30)
    if qos is QosClass.GUARANTEED:
        limits = {"limit": request, "memory_limit": memory or None}
        return {"request": request, "memory_request": memory, **limits}
    return {"request": request, "memory_request": memory}


@st.composite
def containers(draw: st.DrawFn, number: int) -> ContainerSpec:
    """Draw a container, the *number*-th event; its pod has others perhaps."""
    qos = draw(_QOS)
    preferences = Preferences(
        balloon=draw(_BALLOONS),
        dynamic_pool=draw(_DYNAMIC_POOLS),
        pod_pool="p" if number % 8 < 4 else "",
    )
    return ContainerSpec(
        id=f"c{number}",
        pod=f"p{number // 4}",
        name=f"n{number}",
        slot=f"n{number}",
        namespace=draw(_NAMESPACES),
        qos=qos,
        created=number,
        preferences=preferences,
        pool_request=PoolRequest(pool=draw(_STATIC_POOLS)),
        **draw(amounts(qos)),
    )


OLDEST: Final = 50
"""Decisions that a checkpoint lacks at most."""

_LASTING: Final = (*["create"] * 6, *["resize"] * 4, *["stop"] * 2, "switch")
_STEPS: Final = st.sampled_from((*_LASTING, "die"))


class Events(msgspec.Struct, frozen=True):
    """What happens to a node that began under the policy of a kind.

    Attributes:
        steps: The kinds of events.
        number: How many there are.
        oldest: Decisions that a new process lacks at most.
        others: Kinds of policies that there may be in its place.
    """

    steps: st.SearchStrategy[str] = _STEPS
    number: st.SearchStrategy[int] = st.integers(1, 20)
    oldest: int = OLDEST
    others: tuple[str, ...] = ("NonePolicy",)


EVENTS: Final = Events()
OF_ONE_PROCESS: Final = Events(
    st.sampled_from(_LASTING),
    st.just(OLDEST + 10),  # as some are refused
)


def begin(kind: str, data: st.DataObject, of: str = "", **how: bool) -> History:
    """Draw a node under the policy of a kind.

    Args:
        kind: The kind.
        data: Draws.
        of: The kind whose documents its machine fits; empty for the same.
        how: As in `History`.
    """
    machines = data.draw(machines_for(of or kind))
    spec = data.draw(st.sampled_from(DOCUMENTS[kind]))
    return History(policy_of(kind, spec, machines[0]), machines, **how)


def go_on(
    history: History, kind: str, data: st.DataObject, events: Events = EVENTS
) -> None:
    """Draw events of a node, as many as there are to be."""
    for _ in range(data.draw(events.number)):
        _step(history, kind, data, events)


def _step(history: History, kind: str, data: st.DataObject, events: Events) -> None:
    draw, step = data.draw, data.draw(events.steps)
    if step == "switch":
        other = draw(st.sampled_from([*events.others, kind, kind]))
        spec = draw(st.sampled_from(DOCUMENTS.get(other, ("{}",))))
        machine = draw(st.sampled_from(history.machines))
        history.switch(policy_of(other, spec, machine))
    elif step == "die":
        history.die(draw(st.integers(0, events.oldest)))
    elif step == "create" or not history.there:
        history.create(draw(containers(len(history.events))))
    else:
        container = draw(st.sampled_from(sorted(history.there)))
        if step == "stop":
            history.stop(container)
        else:
            history.resize(container, draw(amounts(history.there[container].qos)))
