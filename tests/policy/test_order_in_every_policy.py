"""Containers without a CPU request affect no others, in any order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.policy.events import ContainerSpec, Created, Pin, Stopped
from nri_resmgr.scenario.read import document_of
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import MilliCpus, PolicyError, QosClass

# Of two CPUs one is reserved, so that one is left for all others.
MACHINE: Final = parse_spec("1s1n2c1t")
RESERVED: Final[dict[str, Any]] = {"reservedResources": {"cpu": "cpuset:0"}}
OWN: Final = {"name": "own", "namespaces": ["db"]}
SPECS: Final[dict[str, Any]] = {
    "BalloonsPolicy": {**RESERVED, "balloonTypes": [OWN]},
    "DynamicPoolsPolicy": {**RESERVED, "pools": [OWN]},
    "NonePolicy": {},
    "PodpoolsPolicy": RESERVED,
    "StaticPlusPolicy": RESERVED,
    "StaticPolicy": RESERVED,
    "StaticPoolsPolicy": {
        "pools": [{"name": "infra", "cpuLists": [{"cpus": "0"}]}],
    },
    "TopologyAwarePolicy": RESERVED,
}
IDLE: Final = ContainerSpec("idle", "i", qos=QosClass.BEST_EFFORT)


def guaranteed(cpus: int) -> ContainerSpec:
    request = MilliCpus(1000 * cpus)
    qos = QosClass.GUARANTEED
    return ContainerSpec(
        "db", "d", namespace="db", qos=qos, request=request, limit=request
    )


def arrive(
    kind: str, *specs: ContainerSpec, leaves: Sequence[str] = ()
) -> dict[str, Pin]:
    """Create containers that are not refused, and stop some; return their pins."""
    policy: Any = build_policy(parse_config(document_of(kind, SPECS[kind])), MACHINE)
    state = policy.start()
    for spec in specs:
        try:
            state = policy.decide(state, Created(spec)).state
        except PolicyError:
            assert spec.request, spec  # the other is never refused
    for key in leaves:
        state = policy.decide(state, Stopped(key)).state
    return dict(policy.pins(state))


def test_all_kinds_are_here() -> None:
    assert SPECS.keys() == BUILT_IN.keys()


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("cpus", [1, 2])
def test_both_orders_end_alike(kind: str, cpus: int) -> None:
    first = arrive(kind, IDLE, guaranteed(cpus))
    last = arrive(kind, guaranteed(cpus), IDLE)

    assert first == last
    assert "idle" in first
    # More than all CPUs together fits where requests do not count.
    assert cpus == 2 or "db" in first
    if kind != "NonePolicy":
        assert all(pin.cpus for pin in first.values())


@pytest.mark.parametrize("kind", SPECS)
def test_the_other_returns_when_there_is_room(kind: str) -> None:
    alone = arrive(kind, IDLE)

    assert arrive(kind, IDLE, guaranteed(1), leaves=["db"]) == alone
    assert arrive(kind, guaranteed(1), IDLE, leaves=["db"]) == alone
