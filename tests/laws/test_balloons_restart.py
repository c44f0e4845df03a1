"""After a restart without a checkpoint, balloons are found by the containers' CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import hypothesis.strategies as st
import msgspec
from hypothesis import assume, given

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.events import ContainerSpec, Created, Stopped, Synchronized
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.values import CpuSet, MilliCpus, PolicyError
from tests.laws.balloons_draws import LEVELS, containers, documents, policy_for
from tests.laws.balloons_recount import cpus_of, short_leaves
from tests.laws.topology_aware_draws import MACHINES, machine_of, on

_PLAIN: Final[dict[str, Any]] = {
    "reservedResources": {"cpu": "1"},
    "balloonTypes": [{"name": "a"}, {"name": "b", "preferNewBalloons": True}],
}
"""A document that fits every machine."""

Node: TypeAlias = tuple[BalloonsPolicy, BalloonsState]
"""A policy, and what holds after some containers came and went."""


@st.composite
def sized(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container of a type that others are of, too, which may hide threads."""
    asked = st.sampled_from(["a", "a", "b", "whole", ""])
    preferences = Preferences(
        balloon=draw(asked), hide_hyperthreads=draw(st.sampled_from([True, None, None]))
    )
    request = draw(st.sampled_from([200, 1000, 1500, 2000]))
    spec = msgspec.structs.replace(draw(containers()), slot="", preferences=preferences)
    return msgspec.structs.replace(spec, request=MilliCpus(request))


@st.composite
def nodes(draw: st.DrawFn, levels: Sequence[str]) -> Node:
    """Draw a node whose types share idle CPUs at some of *levels*."""
    machine = machine_of(draw(MACHINES)[0])
    policy = policy_for(draw(pinning(levels)), machine)
    policy = policy or policy_for(_with_shares(_PLAIN, draw(_each(levels))), machine)
    assert policy is not None
    state = policy.start()
    for number, spec in enumerate(draw(st.lists(sized(), min_size=2, max_size=6))):
        named = msgspec.structs.replace(
            on(machine, spec), id=f"c{number}", created=number
        )
        with suppress(PolicyError):
            state = policy.decide(state, Created(named)).state
    for key in draw(
        st.sets(st.sampled_from(sorted(state.memberships) or [""]), max_size=2)
    ):
        state = policy.decide(state, Stopped(key)).state
    assume(not short_leaves(policy, state))
    return policy, state


@st.composite
def pinning(draw: st.DrawFn, levels: Sequence[str]) -> dict[str, Any]:
    """Draw a configuration that pins all containers and does not overfill balloons."""
    spec = draw(documents()) | {"pinCPU": True, "onFailure": "refuse"}
    return _with_shares(spec, draw(_each(levels)))


def _each(levels: Sequence[str]) -> st.SearchStrategy[list[str]]:
    """Draw a level for each type; empty for none."""
    return st.lists(st.sampled_from(["", *levels]), min_size=6, max_size=6)


def _with_shares(spec: Mapping[str, Any], levels: Sequence[str]) -> dict[str, Any]:
    rows = [
        {**row, "shareIdleCPUsInSame": level}
        for row, level in zip(spec["balloonTypes"], levels, strict=False)
    ]
    return {**spec, "balloonTypes": rows}


def restarted(node: Node) -> BalloonsState:
    """Start again with the running containers that the runtime reports."""
    policy, state = node
    pins, entries = policy.pins(state), state.ledger.entries.values()
    there = (
        msgspec.structs.replace(one.spec, present=pins[one.spec.id]) for one in entries
    )
    return policy.decide(policy.start(), Synchronized(tuple(there))).state


@given(nodes([]))
def test_without_shared_idle_cpus_all_containers_keep_their_cpus(node: Node) -> None:
    policy, state = node
    after = restarted(node)

    assert {k: pin.cpus for k, pin in policy.pins(after).items()} == (
        {k: pin.cpus for k, pin in policy.pins(state).items()}
    )


@given(nodes(LEVELS))
def test_a_balloon_is_where_its_containers_ran(node: Node) -> None:
    policy, state = node
    after, pins = restarted(node), policy.pins(state)

    for key, membership in after.memberships.items():
        cores = map(policy.machine.core_of, pins[key].cpus)
        if membership.balloon:
            near = CpuSet.union(core.cpus for core in cores)
            assert cpus_of(after.balloons[membership.balloon], after) <= near


@given(nodes(LEVELS))
def test_no_container_loses_its_cpus_to_others(node: Node) -> None:
    _, state = node
    after = restarted(node)

    for key, membership in state.memberships.items():
        if membership.balloon:
            mine = cpus_of(state.balloons[membership.balloon], state)
            here = state.balloons[membership.balloon].members
            others = [
                cpus_of(after.balloons[one.balloon], after)
                for other, one in after.memberships.items()
                if one.balloon and other not in here
            ]
            assert mine.isdisjoint(CpuSet.union(others)), key
