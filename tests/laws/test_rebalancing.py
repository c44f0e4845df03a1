"""Without changes on a node, rebalancing comes to an end."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import TopologyAwareConfig
from nri_resmgr.policy.events import ContainerSpec, Created, Rebalance, Stopped
from nri_resmgr.policy.rules import Rule
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import MilliCpus, PolicyError, QosClass
from tests.topology.odd_machines import odd_specs

MACHINES = (
    odd_specs() | st.sampled_from(["1s4n4c1t", "2s2n4c1t l3=2", "2s1n4c2t"])
).map(parse_spec)
REQUESTS = st.sampled_from([0, 0, 100, 500, 1000, 1500, 2000, 3000, 4000, 7000])


@st.composite
def containers(draw: st.DrawFn) -> list[ContainerSpec]:
    """Draw containers of all QoS classes, some of which do not fit."""
    found = []
    for number, request in enumerate(draw(st.lists(REQUESTS, max_size=14))):
        qos = draw(st.sampled_from(QosClass)) if request else QosClass.BEST_EFFORT
        if request and qos is QosClass.BEST_EFFORT:
            qos = QosClass.BURSTABLE
        limited = qos is QosClass.GUARANTEED or (request and draw(st.booleans()))
        found.append(
            ContainerSpec(
                id=f"c{number}",
                pod=f"p{number}",
                qos=qos,
                request=MilliCpus(request),
                limit=MilliCpus(request) if limited else None,
            )
        )
    return found


@given(MACHINES, containers(), st.data(), st.integers(1, 5))
def test_rebalancing_ends(
    machine: Any, specs: list[ContainerSpec], data: st.DataObject, limit: int
) -> None:
    policy: Any = build_policy(TopologyAwareConfig(), machine)
    state, present = policy.start(), []
    for spec in specs:
        try:
            state = policy.decide(state, Created(spec)).state
        except PolicyError:
            continue
        present.append(spec.id)
    for key in data.draw(st.permutations(present))[: len(present) // 2]:
        state = policy.decide(state, Stopped(key)).state

    # Each container may move several times: others leave it room later.
    for _ in range(4 * len(specs) + 1):
        decision = policy.decide(state, Rebalance(limit))
        if not decision.reasons:
            break
        moved = [one for one in decision.reasons if one.rule is Rule.REBALANCED]
        assert 0 < len(moved) <= limit
        exclusive = policy.exclusive_cpus(state)
        assert policy.exclusive_cpus(decision.state) == exclusive
        state = decision.state
    assert not decision.reasons
