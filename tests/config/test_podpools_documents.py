"""Documents of the podpools policy: values, mistakes, and those of CRI-RM."""

from __future__ import annotations

from typing import Final

import pytest

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import BadSetting
from nri_resmgr.config.migrate import convert_text
from nri_resmgr.config.podpools import (
    InstanceUnit,
    PodpoolConfig,
    PodpoolsPolicyConfig,
)
from nri_resmgr.policies import parse_config, read_config
from nri_resmgr.policy.podpools import PodpoolsPolicy
from nri_resmgr.topology.synthetic import parse_spec

HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: PodpoolsPolicy\n"
POOLS: Final = "$.spec.pools"
NO_LIMIT: Final = (
    "missing, expected a limit: with fillOrder Packed the first instance would get all "
    "pods"
)


def config_of(pools: str) -> PodpoolsPolicyConfig:
    config = parse_config(f"{HEAD}spec: {{pools: {pools}}}")
    assert isinstance(config, PodpoolsPolicyConfig)
    return config


def test_all_of_a_pool_and_the_defaults() -> None:
    text = """[
        {name: a, cpu: "2", maxPods: 3, instances: 50 %, fillOrder: Packed},
        {name: b, cpu: 1, instances: 4 cpus},
        {name: reserved, maxPods: -1},
        {name: default, cpu: 3}]"""

    assert config_of(text).pools == (
        PodpoolConfig(f"{POOLS}[0]", "a", 2, 3, 50, InstanceUnit.PERCENT, "Packed"),
        PodpoolConfig(f"{POOLS}[1]", "b", 1, 0, 4, InstanceUnit.CPUS),
        PodpoolConfig(f"{POOLS}[2]", "reserved", 0, -1),
        PodpoolConfig(f"{POOLS}[3]", "default", 3),
    )
    assert parse_config(HEAD) == PodpoolsPolicyConfig()


@pytest.mark.parametrize(
    ("pools", "key", "why"),
    [
        ("[{cpu: 1}]", "[0].name", "missing, expected text"),
        ("[{name: a, cpu: 1}, {name: a, cpu: 1}]", "[1].name", "duplicate name 'a'"),
        (
            "[{name: a}]",
            "[0].cpu",
            "missing, expected the number of CPUs of each instance",
        ),
        (
            "[{name: a, cpu: 0.5}]",
            "[0].cpu",
            "expected a whole number above 0, not 0.5",
        ),
        (
            "[{name: a, cpu: 1, instances: two}]",
            "[0].instances",
            "expected a number, such as 2, '4 CPUs' or '50 %', not 'two'",
        ),
        (
            "[{name: a, cpu: 1, fillOrder: packed}]",
            "[0].fillOrder",
            "unknown value, did you mean Packed?",
        ),
        (
            "[{name: a, cpu: 1, maxPods: -2}]",
            "[0].maxPods",
            "expected -1 to 65536, not -2",
        ),
        (
            "[{name: a, cpu: 1, instances: 2, fillOrder: Packed}]",
            "[0].maxPods",
            NO_LIMIT,
        ),
        (
            "[{name: reserved, cpu: 1}]",
            "[0].cpu",
            "not for a built-in pool: it has the CPUs of reservedResources",
        ),
        (
            "[{name: default, cpu: 1, maxPods: 2}]",
            "[0].maxPods",
            "not for a built-in pool: pods run here that find no room elsewhere",
        ),
    ],
)
def test_mistakes_are_named_by_their_path(pools: str, key: str, why: str) -> None:
    with pytest.raises(BadSetting) as caught:
        config_of(pools)

    assert str(caught.value) == f"{POOLS}{key}: {why}"


@pytest.mark.parametrize(
    ("pools", "key", "why"),
    [
        (
            "[{name: a, cpu: 2, instances: 2}]",
            "[0].cpu",
            "an instance of a needs 2 CPUs, and of those for pools are left: 1 (3)",
        ),
        (
            "[{name: big, cpu: 4}]",
            "[0].cpu",
            "an instance of big needs 4 CPUs, and of those for pools are left: 3 (1-3)",
        ),
        (
            "[{name: a, cpu: 1, instances: 4 CPUs}]",
            "[0].instances",
            "pools have only 3 CPUs",
        ),
    ],
)
def test_pools_that_need_more_cpus_than_the_machine_has_are_reported(
    pools: str, key: str, why: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        build_policy(config_of(pools), parse_spec("1s1n4c1t"))

    assert str(caught.value).partition(";")[0] == f"{POOLS}{key}: {why}"


def test_isolated_cpus_are_in_no_pool() -> None:
    machine = parse_spec("1s1n4c1t isolated=3")
    policy = build_policy(config_of("[{name: a, cpu: 1}]"), machine)

    assert isinstance(policy, PodpoolsPolicy)
    cpus = {name: str(one.cpus) for name, one in policy.settings.instances.items()}
    assert cpus == {"reserved": "0", "a[0]": "1", "default": "2"}


def test_a_document_of_cri_resource_manager() -> None:
    text = """
policy:
  Active: podpools
  ReservedResources: {CPU: 1}
  podpools:
    PinMemory: false
    Pools:
    - {name: pairs, cpu: "2", maxpods: 3, instances: 60 CPUs, FillOrder: FirstFree}
"""

    assert parse_config(convert_text(text, read_config)) == parse_config(
        f"""{HEAD}
spec:
  reservedResources: {{cpu: 1}}
  pinMemory: false
  pools:
  - {{name: pairs, cpu: 2, maxPods: 3, instances: 60 CPUs, fillOrder: FirstFree}}
"""
    )
