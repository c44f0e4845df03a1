"""A new configuration of podpools moves only pods whose place is not one any more."""

from __future__ import annotations

from typing import Any, Final

import hypothesis.strategies as st
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Created, Synchronized
from nri_resmgr.policy.podpools import PodpoolsPolicy
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, QosClass
from tests.policy.stories import policy_of

MACHINE: Final = parse_spec("1s2n4c1t")
MOST: Final = 6  # CPUs of pools: one is reserved, and one is left
NAMES: Final = ("one", "two", "many")


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw pools that fit the machine, in any order, or none."""
    left, pools = MOST, []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        cpus = draw(st.integers(1, 2))
        most = left // cpus
        if most:
            instances = draw(st.integers(1, min(most, 3)))
            left -= cpus * instances
            limit = draw(st.sampled_from([0, 1, 2]))
            order = draw(st.sampled_from(["Balanced", "FirstFree"]))
            pools.append(
                {
                    "name": name,
                    "cpu": cpus,
                    "instances": instances,
                    "maxPods": limit,
                    "fillOrder": order,
                }
            )
    return {"pools": pools}


@st.composite
def containers(draw: st.DrawFn) -> list[ContainerSpec]:
    """Draw containers of some pods; those of a pod ask for the same pool."""
    found = []
    for pod in range(draw(st.integers(1, 7))):
        asked = draw(st.sampled_from([*NAMES, ""]))
        found += [
            ContainerSpec(
                id=f"c{pod}-{number}",
                pod=f"p{pod}",
                qos=QosClass.BURSTABLE,
                request=MilliCpus(100),
                preferences=Preferences(pod_pool=asked),
                created=draw(st.integers(0, 3)),
            )
            for number in range(draw(st.integers(1, 2)))
        ]
    return found


def built(document: dict[str, Any]) -> PodpoolsPolicy:
    policy = policy_of("PodpoolsPolicy", document, MACHINE)
    assert isinstance(policy, PodpoolsPolicy)
    return policy


def limit_of(document: dict[str, Any], pool: str) -> int:
    """Return how many pods an instance of a pool may have at most."""
    (limit,) = (one["maxPods"] for one in document["pools"] if one["name"] == pool)
    return limit or len(NAMES) * 100


@given(
    before=documents(),
    after=documents(),
    specs=containers(),
    remembers=st.booleans(),
    data=st.data(),
)
def test_pods_stay_where_their_pool_still_has_an_instance(
    before: dict[str, Any],
    after: dict[str, Any],
    specs: list[ContainerSpec],
    *,
    remembers: bool,
    data: st.DataObject,
) -> None:
    policy = built(before)
    state = policy.start()
    for spec in data.draw(st.permutations(specs)):
        state = policy.decide(state, Created(spec)).state
    runs = policy.pins(state)
    cpus_of = {spec.pod: runs[spec.id].cpus for spec in specs}

    policy = built(after)
    present = tuple(replace(spec, present=runs[spec.id]) for spec in specs)
    old = state if remembers else policy.start()
    state = policy.decide(old, Synchronized(present)).state
    pins = policy.pins(state)

    asked = {spec.pod: spec.preferences.pod_pool for spec in specs}
    now: dict[str, CpuSet] = {}
    for spec in specs:
        # All of a pod are in one place.
        assert now.setdefault(spec.pod, pins[spec.id].cpus) == pins[spec.id].cpus
    places = {one.cpus: one.pool for one in policy.settings.instances.values()}
    assert {places[cpus] for cpus in now.values()} <= {*asked.values(), "default"}
    for cpus, pool in places.items():
        if pool not in NAMES:
            continue
        limit = limit_of(after, pool)
        inside = {pod for pod, one in now.items() if one == cpus}
        ran_there = {
            pod for pod, one in cpus_of.items() if one == cpus and asked[pod] == pool
        }
        assert len(inside) <= limit
        # The instance is theirs, as far as it has room for them.
        assert len(inside & ran_there) == min(limit, len(ran_there))
    for pod, pool in asked.items():
        # No pod is in the default pool while an instance of its own has room, unless it
        # ran there before.
        if pool in places.values() and pool and places[now[pod]] == "default":
            full = [
                sum(one == cpus for one in now.values()) >= limit_of(after, pool)
                for cpus, name in places.items()
                if name == pool
            ]
            assert all(full) or cpus_of[pod] == now[pod]
