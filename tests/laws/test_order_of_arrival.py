"""Whether a container with a request fits does not depend on earlier containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.events import ContainerSpec, Created, Stopped
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.policy import State, TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, PolicyError, QosClass
from tests.laws.balloons_draws import policy_for
from tests.topology.odd_machines import Oddities, odd_specs

# Of two CPUs and more, one of which is reserved, by its number or not.
MACHINES = (
    odd_specs(Oddities(least=2, ordinary=CpuSet.of(0, 1)))
    | st.sampled_from(
        ("1s1n2c1t", "1s1n4c1t", "1s2n2c1t", "2s2n2c1t l3=1", "4s2c1t around=2")
    )
).map(parse_spec)
RESERVED = st.sampled_from(["cpuset:0", "1"])
TYPES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "maxCPUs": st.sampled_from([1, 2, 3]),
            "minCPUs": st.just(1),
            "minBalloons": st.just(1),
            "preferPerNamespaceBalloon": st.just(True),
            "shareIdleCPUsInSame": st.sampled_from(["system", "numa"]),
        },
    ),
    min_size=2,
    max_size=2,
)
NAMESPACES = ("web", "lab", "default")
MILLIS = st.sampled_from([1000, 2000, 3000, 1000, 980, 1500, 2500, 6000])


def idle(number: int, *, burstable: bool) -> ContainerSpec:
    """Return a container without a CPU request."""
    qos = QosClass.BURSTABLE if burstable else QosClass.BEST_EFFORT
    memory = Bytes(burstable << 30)
    return ContainerSpec(f"idle{number}", f"i{number}", qos=qos, memory_request=memory)


def guaranteed(number: int, milli: int) -> ContainerSpec:
    request = MilliCpus(milli)
    return ContainerSpec(
        f"g{number}",
        f"g{number}",
        qos=QosClass.GUARANTEED,
        request=request,
        limit=request,
    )


@given(
    machine=MACHINES,
    prefers=st.booleans(),
    idlers=st.lists(st.booleans(), min_size=1, max_size=4),
    asked=st.lists(MILLIS, min_size=1, max_size=3),
    data=st.data(),
)
def test_containers_without_requests_do_not_affect_the_placement_of_others(
    *,
    machine: Machine,
    prefers: bool,
    idlers: list[bool],
    asked: list[int],
    data: st.DataObject,
) -> None:
    """All with a request come in one order; the others come anywhere between them."""
    settings = TopologyAwareSettings(
        available=machine.online, reserved=CpuSet.of(0), prefer_shared=prefers
    )
    policy = TopologyAwarePolicy(machine, settings)
    asking = [guaranteed(number, one) for number, one in enumerate(asked)]
    without = [idle(number, burstable=one) for number, one in enumerate(idlers)]
    mixed = list(asking)
    for one in without:
        mixed.insert(data.draw(st.integers(0, len(mixed))), one)

    expected, _ = arrive(policy, [*asking, *without])
    found, state = arrive(policy, mixed)

    assert found == expected
    check_return(policy, state)


@st.composite
def balloons_policies(draw: st.DrawFn) -> BalloonsPolicy:
    """Draw a node with two types; these have no options where they would not fit."""
    machine = draw(MACHINES)
    names, rows = NAMESPACES[:2], draw(TYPES)
    plain = [{"name": name, "namespaces": [name]} for name in names]
    types = [one | row for one, row in zip(plain, rows, strict=True)]
    reserved: dict[str, Any] = {"reservedResources": {"cpu": draw(RESERVED)}}
    policy = policy_for(reserved | {"balloonTypes": types}, machine)
    policy = policy or policy_for(reserved | {"balloonTypes": plain}, machine)
    assert policy
    return policy


@given(
    policy=balloons_policies(),
    idlers=st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=4),
    asked=st.lists(
        st.tuples(MILLIS, st.sampled_from(NAMESPACES)), min_size=1, max_size=4
    ),
    data=st.data(),
)
def test_in_balloons_containers_without_requests_do_not_affect_others(
    *,
    policy: BalloonsPolicy,
    idlers: list[str],
    asked: list[tuple[int, str]],
    data: st.DataObject,
) -> None:
    """The same of balloons, where containers without a request go to the reserved one.

    A pod's own annotation of its type is kept, and so is not drawn.
    """
    asking = [
        replace(guaranteed(number, milli), namespace=where)
        for number, (milli, where) in enumerate(asked)
    ]
    without = [
        replace(idle(number, burstable=False), namespace=where)
        for number, where in enumerate(idlers)
    ]
    mixed = list(asking)
    for one in without:
        mixed.insert(data.draw(st.integers(0, len(mixed))), one)

    expected, _ = arrive_in_balloons(policy, [*asking, *without])
    found, state = arrive_in_balloons(policy, mixed)

    assert found == expected
    check_return_to_balloons(policy, state)


def arrive_in_balloons(
    policy: BalloonsPolicy, specs: Sequence[ContainerSpec]
) -> tuple[set[str], BalloonsState]:
    """Create containers; return the ids of those with a request that are there."""
    state = policy.start()
    for spec in specs:
        try:
            state = policy.decide(state, Created(spec)).state
        except PolicyError:
            assert spec.request, spec  # the others are never refused
    for key, entry in state.ledger.entries.items():
        membership = state.memberships[key]
        assert policy.pins(state)[key].cpus
        if entry.spec.request:
            assert not membership.fell_back
            balloon = state.balloons[membership.balloon]
            assert balloon.type == entry.spec.namespace
            assert balloon.load <= 1000 * len(balloon.cpus)
        elif membership.fell_back:
            assert membership.balloon == "reserved[0]"
    return {key for key, one in state.ledger.entries.items() if one.spec.request}, state


def check_return_to_balloons(policy: BalloonsPolicy, state: BalloonsState) -> None:
    """Each that fell back has returned as soon as a CPU is free."""
    for key, entry in dict(state.ledger.entries).items():
        if entry.spec.request:
            state = policy.decide(state, Stopped(key)).state
            fell_back = any(one.fell_back for one in state.memberships.values())
            assert not (fell_back and state.free)


def arrive(
    policy: TopologyAwarePolicy, specs: Sequence[ContainerSpec]
) -> tuple[dict[str, int], State]:
    """Create containers; return what those with a request got, by id."""
    state, got = policy.start(), {}
    for spec in specs:
        try:
            state = policy.decide(state, Created(spec)).state
        except PolicyError:
            assert spec.request, spec  # the others are never refused
    for key, entry in state.ledger.entries.items():
        pin = policy.pins(state)[key]
        assert pin.cpus
        if entry.spec.request:
            grant = state.grants[key]
            got[key] = 1000 * len(grant.cpus) + grant.fraction
            assert not grant.fell_back
    return got, state


def check_return(policy: TopologyAwarePolicy, state: State) -> None:
    """When all with a request have gone, nothing is left on the reserved CPUs."""
    for key, entry in dict(state.ledger.entries).items():
        if entry.spec.request:
            decision = policy.decide(state, Stopped(key))
            state = decision.state
            now = {
                one.container for one in decision.reasons if one.rule is Rule.NOW_FITS
            }
            assert all(not state.grants[key].fell_back for key in now)
    assert not any(grant.fell_back for grant in state.grants.values())
    pins = policy.pins(state)
    assert all(pin.cpus.isdisjoint(policy.settings.reserved) for pin in pins.values())
