"""Documents of the dynamic-pools policy."""

from __future__ import annotations

import re

import pytest

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import BadSetting
from nri_resmgr.config.dynamic_pools import (
    DynamicPoolConfig,
    DynamicPoolsPolicyConfig,
)
from nri_resmgr.config.policy_config import RebalanceUse
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.dynamic_pools import DynamicPoolsPolicy
from nri_resmgr.policy.events import ContainerSpec, Created
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, QosClass

HEAD = "apiVersion: config.nri/v1alpha1\nkind: DynamicPoolsPolicy\nspec: "


def read(spec: str) -> DynamicPoolsPolicyConfig:
    found = parse_config(HEAD + spec)
    assert isinstance(found, DynamicPoolsPolicyConfig)
    return found


def test_every_option_is_read() -> None:
    found = read(
        "{reservedPoolNamespaces: [infra], pinCPU: false, pinMemory: false, "
        "rebalance: {interval: 10s}, cpuClasses: [{name: turbo, maxFreq: 3GHz}], "
        "pools: [{name: web, namespaces: [a, b*], cpuClass: turbo, "
        "allocatorPriority: low}]}"
    )

    assert found.pools == (DynamicPoolConfig("web", ("a", "b*"), "turbo", "low"),)
    assert found.reserved_pool_namespaces == ("kube-system", "infra")
    assert (found.pin_cpu, found.pin_memory) == (False, False)
    assert found.rebalance == RebalanceUse(10.0)
    assert found.cpu_classes is not None


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{pools: [{name: a}, {name: a}]}", "$.spec.pools[1].name: duplicate name"),
        ("{pools: [{namespaces: [a]}]}", "$.spec.pools[0].name: missing"),
        (
            "{pools: [{name: shared, namespaces: [a]}]}",
            "$.spec.pools[0].namespaces: not for a built-in pool",
        ),
        (
            "{pools: [{name: reserved, namespaces: [a]}]}",
            "$.spec.pools[0].namespaces: not for a built-in pool, which has those of",
        ),
        (
            "{pools: [{name: a, cpuClass: fast}]}",
            "$.spec.pools[0].cpuClass: unknown value, none is defined",
        ),
        (
            "{pools: [{name: a, allocatorPriority: 0}]}",
            "$.spec.pools[0].allocatorPriority: expected text, not 0",
        ),
        ("{pools: [{name: a, cpu: 2}]}", "$.spec.pools[0].cpu: unknown key"),
    ],
)
def test_mistakes(spec: str, why: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(why)):
        read(spec)


def test_some_cpus_must_be_left() -> None:
    config = read("{reservedResources: {cpu: 4}}")

    with pytest.raises(BadSetting, match=r"no CPU of 0-3 is left for pools"):
        build_policy(config, parse_spec("1s1n4c1t"))


@pytest.mark.parametrize(
    ("pins", "found"),
    [
        ("true", {"turbo": CpuSet.parse("2-3"), "slow": CpuSet.parse("0-1")}),
        ("false", {}),
    ],
)
def test_cpu_classes_follow_the_pools(pins: str, found: dict[str, CpuSet]) -> None:
    classes = "cpuClasses: [{name: turbo}, {name: slow}]"
    pools = "{name: web, namespaces: [web], cpuClass: turbo}"
    built_in = "{name: shared, cpuClass: slow}, {name: reserved, cpuClass: slow}"
    config = read(f"{{pinCPU: {pins}, {classes}, pools: [{pools}, {built_in}]}}")
    policy = build_policy(config, parse_spec("1s1n4c1t"))
    assert isinstance(policy, DynamicPoolsPolicy)
    spec = ContainerSpec(
        id="a", namespace="web", qos=QosClass.BURSTABLE, request=MilliCpus(2000)
    )
    state = policy.decide(policy.start(), Created(spec)).state

    assert policy.host_use(state).cpu_classes == found
