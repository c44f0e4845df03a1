"""No configuration takes exclusive CPUs from running containers unless it says so."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from nri_resmgr.app.plugin.engine import Engine
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import ContainerSpec, Created
from nri_resmgr.policy.losses import ExclusiveCpusLost
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, PolicyError, QosClass
from tests.topology.odd_machines import Oddities, odd_specs

MACHINES = (
    odd_specs(Oddities(least=2, ordinary=CpuSet.of(0, 1)))
    | st.sampled_from(["1s1n8c1t", "2s2n2c2t", "1s2n3c1t"])
).map(parse_spec)
AMOUNTS = [(1000, QosClass.GUARANTEED), (2000, QosClass.GUARANTEED)] * 2 + [
    (3000, QosClass.GUARANTEED),
    (1500, QosClass.GUARANTEED),
    (500, QosClass.BURSTABLE),
    (0, QosClass.BEST_EFFORT),
]
CPUS = st.sampled_from(
    ["cpuset:0-3", "cpuset:2-7", "cpuset:1-4", "exclude-cpuset:5", "exclude-cpuset:0-1"]
)
RESERVED = st.sampled_from(["1", "2", "3", "4"])


def document(kind: str, spec: dict[str, Any]) -> PolicyConfig:
    head = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\n"
    return parse_config(f"{head}spec: {spec}")


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {"reservedResources": {"cpu": draw(RESERVED)}}
    if draw(st.booleans()):
        found["availableResources"] = {"cpu": draw(CPUS)}
    if draw(st.integers(0, 4)) == 0:
        found["pinCPU"] = False
    return found


@st.composite
def configs(draw: st.DrawFn) -> PolicyConfig:
    kind = draw(st.sampled_from(["TopologyAware", "Static", "StaticPlus", "Balloons"]))
    spec = draw(rows())
    if kind == "TopologyAware":
        spec["preferSharedCPUs"] = draw(st.booleans())
    if kind == "Balloons":
        own: dict[str, Any] = {
            "name": "own",
            "preferNewBalloons": True,
            "namespaces": ["default"],
        }
        if draw(st.booleans()):
            own["maxCPUs"] = draw(st.integers(1, 3))
        spec["balloonTypes"] = [own] if draw(st.booleans()) else []
    return document(f"{kind}Policy", spec)


def own_cpus(engine: Engine, key: str) -> CpuSet:
    """Return what a container runs on, and no other."""
    pins = engine.policy.pins(engine.state)
    others = (pin.cpus for one, pin in pins.items() if one != key)
    return pins[key].cpus - CpuSet.union(others)


@given(
    machine=MACHINES,
    kind=st.sampled_from(["TopologyAwarePolicy", "StaticPolicy", "StaticPlusPolicy"]),
    asked=st.lists(st.sampled_from(AMOUNTS), min_size=1, max_size=6),
    config=configs(),
)
def test_containers_keep_their_number_of_cpus_or_the_configuration_is_refused(
    machine: Any,
    kind: str,
    asked: list[tuple[int, QosClass]],
    config: PolicyConfig,
) -> None:
    engine = Engine(machine, document(kind, {"reservedResources": {"cpu": "1"}}))
    whole: dict[str, int] = {}
    for number, (milli, qos) in enumerate(asked):
        key, request = f"c{number}", MilliCpus(milli)
        spec = ContainerSpec(
            id=key,
            pod=f"pod-{key}",
            title=key,
            name=key,
            namespace="default",
            qos=qos,
            created=number,
            request=request,
            limit=request if qos is QosClass.GUARANTEED else None,
        )
        try:
            engine.decide(Created(spec))
        except PolicyError:
            continue
        # A policy may grant the whole CPUs of a fraction, or none of them.
        if qos is QosClass.GUARANTEED and milli % 1000 == 0:
            whole[key] = milli // 1000
    before = engine.policy, engine.state, engine.config

    try:
        engine.rebuild(config, machine, may_lose=config.allow_loss)
    except BadSetting:
        return
    except ExclusiveCpusLost as refusal:
        assert (engine.policy, engine.state, engine.config) == before
        permitted = msgspec.structs.replace(config, allow_loss=True)
        engine.rebuild(permitted, machine, may_lose=permitted.allow_loss)
        has = engine.policy.exclusive_parts(engine.state)
        for one in refusal.losses:
            assert len(has.get(one.title, ())) < len(one.before)
        return
    if engine.policy.pins(engine.state).keys() and config.kind != "BalloonsPolicy":
        for key, count in whole.items():
            assert len(own_cpus(engine, key)) >= count
    for key, count in whole.items():
        assert len(engine.policy.exclusive_parts(engine.state)[key]) >= count
