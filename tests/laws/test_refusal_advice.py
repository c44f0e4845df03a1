"""What a refusal of the topology-aware policy advises helps, and nothing else does."""

from __future__ import annotations

from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    PodCreated,
    Updated,
)
from nri_resmgr.policy.mems import MemoryShort
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.errors import NoPoolFits
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.topology import HugePages
from nri_resmgr.topology.hints import Hint
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, PolicyError, QosClass
from tests.laws.refusal_advice import (
    NOTHING,
    SHARED,
    TO_HELP,
    TopologyAwareCase,
    advice_of,
    check,
)
from tests.laws.topology_aware_draws import (
    AMOUNTS,
    MACHINES,
    SETTINGS,
    machine_of,
    on,
    settings_for,
    specs,
)


def play(case: TopologyAwareCase) -> TopologyAwareState:
    """Check what is refused, or placed on shared CPUs instead."""
    before: TopologyAwareState = case.state
    try:
        decision = case.policy.decide(before, case.event)
    except (NoPoolFits, MemoryShort) as error:
        check(case, str(error))
        return before
    except PolicyError:
        return before
    if isinstance(case.event, Created):
        why = decision.reasons[0]
        if why.rule is Rule.FELL_BACK and (
            NOTHING in why.detail or TO_HELP in why.detail
        ):
            check(case, why.detail)
    after: TopologyAwareState = decision.state
    return after


@st.composite
def events(draw: st.DrawFn, state: TopologyAwareState) -> Any:
    known = sorted(state.ledger.entries)
    kind = draw(st.sampled_from(["create", "create", "update", "pod"]))
    if kind == "update" and known:
        spec = state.ledger.spec_of(draw(st.sampled_from(known)))
        return Updated(enlarged(draw, replace(spec, **draw(AMOUNTS)[spec.qos])))
    machine = state.pool_ledger.tree.machine
    spec = on(machine, enlarged(draw, draw(specs())))
    if kind == "pod":
        more = on(machine, draw(specs()))
        expected = (replace(spec, id="", name="web"), replace(more, id="", name="log"))
        return PodCreated(
            spec.pod,
            tuple(replace(one, pod=spec.pod) for one in expected),
            frozenset(("web", "log")),
        )
    return Created(spec)


def enlarged(draw: st.DrawFn, spec: ContainerSpec) -> ContainerSpec:
    times = draw(st.sampled_from([1, 1, 1, 3]))
    limit = None if spec.limit is None else MilliCpus(spec.limit * times)
    return replace(spec, request=MilliCpus(spec.request * times), limit=limit)


# Fewer ordinary CPUs than isolated ones, and few huge pages.
SCARCE: Final = st.sampled_from(
    [("1s1n4c2t isolated=1-3,5-7",), ("2s1n3c1t memory=4Gi hugepages=2Mi:64",)]
)


@given(MACHINES | SCARCE, SETTINGS, st.data())
def test_the_advice_of_a_refusal_is_accepted(
    machines: tuple[str, ...], conditions: dict[str, Any], data: st.DataObject
) -> None:
    machine = machine_of(machines[0])
    fit = settings_for(
        machine, conditions["reserved"], conditions["withheld"], conditions["options"]
    )
    policy = TopologyAwarePolicy(machine, fit)
    state = policy.start()

    for _ in range(data.draw(st.integers(1, 8))):
        state = play(TopologyAwareCase(policy, state, data.draw(events(state))))


@pytest.mark.parametrize(
    ("machine", "count", "fields", "expected"),
    [
        pytest.param(
            "1s24c2t isolated=1-23,25-47",
            2,
            {},
            {"annotate it with prefer-isolated-cpus", "ask for at most 1 CPU", SHARED},
            id="almost all CPUs are isolated",
        ),
        pytest.param(
            "1s1n8c1t",
            2,
            {"preferences": Preferences(require_isolated=True)},
            {"annotate it with prefer-shared-cpus", "do not require isolated CPUs"},
            id="no CPU is isolated",
        ),
        pytest.param(
            "1s1n8c1t",
            3,
            {
                "preferences": Preferences(strict_hints=True),
                "hints": (Hint("nic", cpus=CpuSet.parse("0-2")),),
            },
            {"do not make its topology hints strict", "ask for at most 2 CPUs"},
            id="too few CPUs are near a device",
        ),
        pytest.param(
            "1s1n8c1t memory=4Gi",
            2,
            {"memory_limit": Bytes(5 << 30)},
            {"ask for at most 4 GiB", SHARED},
            id="too little memory",
        ),
        pytest.param(
            "1s1n8c1t memory=4Gi hugepages=2Mi:64",
            2,
            {"hugepages": (HugePages(Bytes(2 << 20), 100),)},
            {"ask for at most 128 MiB of 2 MiB huge pages", SHARED},
            id="too few huge pages",
        ),
        pytest.param(
            "1s1n4c1t memory=4Gi",
            8,
            {"memory_limit": Bytes(5 << 30)},
            {SHARED},
            id="too few CPUs, and too little memory",
        ),
    ],
)
def test_an_empty_node_is_too_small(
    machine: str, count: int, fields: dict[str, Any], expected: set[str]
) -> None:
    model, amount = parse_spec(machine), MilliCpus(1000 * count)
    settings = TopologyAwareSettings(available=model.online, reserved=CpuSet.of(0))
    guaranteed: dict[str, Any] = {
        "qos": QosClass.GUARANTEED,
        "request": amount,
        "limit": amount,
    }
    spec = on(model, ContainerSpec("web", "pod", "web", **guaranteed, **fields))
    policy = TopologyAwarePolicy(model, settings)

    case = TopologyAwareCase(policy, policy.start(), Created(spec))
    with pytest.raises(NoPoolFits) as refused:
        policy.decide(case.state, case.event)

    assert set(advice_of(str(refused.value))) == expected
    check(case, str(refused.value))
