"""Whatever CPUs come and go, the machine counts: no container stays on absent ones."""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import ContainerSpec, Created
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, PolicyError, QosClass
from tests.examples import examples
from tests.topology.odd_machines import Oddities, odd_series

_RESERVED: Final = "reservedResources: {cpu: 'cpuset:0,8'}"
_AVAILABLE: Final = "availableResources: {cpu: 'cpuset:0-8,12'}"
_LARGE: Final = "reservedResources: {cpu: 12}"
_LISTS: Final = "cpuLists: [{cpus: '1-2'}, {cpus: '3,11'}]"
_COMMON: Final = (
    f"{{{_RESERVED}}}",
    f"{{{_RESERVED}, {_AVAILABLE}}}",
    f"{{{_LARGE}}}",
    "{availableResources: {cpu: 14}, reservedResources: {cpu: 2}}",
    "{availableResources: {cpu: 'exclude-cpuset:1-3'}}",
    f"{{{_RESERVED}, reserveWholeCores: true}}",
)
_SHARED: Final = "{name: shared, cpuLists: [{cpus: '0,8'}]}"
_THREE_TYPES: Final = (
    "{name: a, minCPUs: 6, minBalloons: 1}, {name: b, minCPUs: 3, minBalloons: 2}, "
    "{name: c, minBalloons: 4}"
)
DOCUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "TopologyAwarePolicy": _COMMON,
    "StaticPolicy": _COMMON,
    "StaticPlusPolicy": _COMMON,
    "DynamicPoolsPolicy": (*_COMMON, f"{{{_RESERVED}, pools: [{{name: p}}]}}"),
    "PodpoolsPolicy": (
        *_COMMON,
        f"{{{_RESERVED}, pools: [{{name: p, cpu: 4, instances: 3}}]}}",
        "{pools: [{name: p, cpu: 2, instances: 8 CPUs}, {name: default, cpu: 2}]}",
    ),
    "BalloonsPolicy": (
        *_COMMON,
        f"{{{_RESERVED}, balloonTypes: [{{name: a, minCPUs: 4, minBalloons: 3}}]}}",
        "{balloonTypes: [{name: a, cpus: ['1-2', '9,10']}, {name: b, minCPUs: 2}]}",
        f"{{balloonTypes: [{_THREE_TYPES}]}}",
        f"{{{_RESERVED}, reservedExact: true, balloonTypes: [{{name: a}}]}}",
        f"{{{_RESERVED}, reservedPerSocket: true}}",
    ),
    "StaticPoolsPolicy": (
        f"{{pools: [{{name: x, exclusive: true, {_LISTS}}}]}}",
        f"{{pools: [{{name: x, {_LISTS}}}, {_SHARED}]}}",
    ),
    "NonePolicy": ("{}",),
}
# 2 sockets of 4 cores with 2 threads: CPU 0 with 8, and so on.
_WHOLE: Final = "2s1n4c2t memory=4Gi"


# Has all that documents name, to begin with.
_ODD: Final = odd_series(Oddities(least=16, first=CpuSet.parse("0-15")))


@st.composite
def machines(draw: st.DrawFn) -> str:
    """Draw the machine with some CPUs offline, or not even there."""
    gone = draw(st.sets(st.integers(0, 15), max_size=15))
    if draw(st.integers(0, 4)) == 0:
        return "1s1n3c1t memory=4Gi"
    return f"{_WHOLE} offline={CpuSet.from_iterable(gone)}" if gone else _WHOLE


@st.composite
def series(draw: st.DrawFn) -> tuple[str, ...]:
    """Draw a whole machine, and what becomes of it."""
    if draw(st.booleans()):
        return draw(_ODD)
    return (_WHOLE, *draw(st.lists(machines(), min_size=1, max_size=4)))


def container(number: int, count: int) -> ContainerSpec:
    """Return a Guaranteed container, or a BestEffort one for 0 CPUs."""
    amount = MilliCpus(1000 * count)
    return ContainerSpec(
        id=f"c{number}",
        pod=f"p{number}",
        created=number,
        qos=QosClass.GUARANTEED if count else QosClass.BEST_EFFORT,
        request=amount,
        limit=amount or None,
    )


def fits(config: PolicyConfig, machine: Machine) -> bool:
    try:
        build_policy(config, machine)
    except BadSetting:
        return False
    return True


def check_left_out(
    policy: ResourcePolicy, config: PolicyConfig, machine: Machine
) -> None:
    """Check that what is left out is all that is not there, and the least besides."""
    found = [one.path for one in policy.left_out]
    absent = [path for path, cpus in config.named_cpus if cpus - machine.online]
    assert found[: len(absent)] == absent
    named = CpuSet.union(cpus for _, cpus in config.named_cpus)
    there = config.without_cpus(named - machine.online)
    sizes = found[len(absent) :]
    assert set(sizes) <= set(there.sizes)
    for one in sizes:
        others = [other for other in sizes if other != one]
        assert not fits(there.without_sizes(others), machine)
    if len(sizes) > 1:
        assert not any(fits(there.without_sizes([one]), machine) for one in there.sizes)
    counts = build_policy(there.without_sizes(sizes), machine)
    in_force = getattr(policy.policy, "settings", None)
    assert getattr(counts, "settings", None) == in_force
    # A daemon that starts there serves by the same, whatever CPUs are not there.
    if not sizes:
        started = ResourcePolicy(machine, config)
        assert getattr(started.policy, "settings", None) == in_force
        assert started.left_out == policy.left_out


@pytest.mark.parametrize("kind", DOCUMENTS)
@examples(0.4)
@given(data=st.data())
def test_the_machine_always_counts(kind: str, data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from(DOCUMENTS[kind]))
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"
    config, (first, *later) = parse_config(text), data.draw(series())
    whole = parse_spec(first)
    policy = ResourcePolicy(whole, config)
    engine = policy.engine  # containers without their pods
    for number, count in enumerate(data.draw(st.lists(st.sampled_from([0, 0, 1, 2])))):
        try:
            engine.decide(Created(container(number, count)))
        except PolicyError:
            continue
    for one in later:
        machine = parse_spec(one)
        change_machine(policy, machine)

        assert engine.machine == machine
        pins = policy.policy.pins(policy.state)
        for pin in pins.values():
            assert pin.cpus <= machine.online
        exclusive = list(policy.policy.exclusive_cpus(policy.state).values())
        assert sum(map(len, exclusive)) == len(CpuSet.union(exclusive))
        check_left_out(policy, config, machine)

    change_machine(policy, whole)
    assert policy.left_out == ()
    fresh = ResourcePolicy(whole, config).policy
    assert getattr(policy.policy, "settings", None) == getattr(fresh, "settings", None)
