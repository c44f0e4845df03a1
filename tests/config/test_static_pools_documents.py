"""Documents of the static-pools policy."""

from __future__ import annotations

import re

import pytest

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import BadSetting
from nri_resmgr.config.static_pools import (
    CpuListConfig,
    StaticPoolConfig,
    StaticPoolsPolicyConfig,
)
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.static_pools import CpuList, StaticPool, StaticPoolsPolicy
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

HEAD = "apiVersion: config.nri/v1alpha1\nkind: StaticPoolsPolicy\nspec: "


def read(spec: str) -> StaticPoolsPolicyConfig:
    found = parse_config(HEAD + spec)
    assert isinstance(found, StaticPoolsPolicyConfig)
    return found


def pools_of(spec: str, machine: str) -> tuple[StaticPool, ...]:
    policy = build_policy(read(spec), parse_spec(machine))
    assert isinstance(policy, StaticPoolsPolicy)
    return tuple(policy.settings.pools.values())


def test_every_option_is_read() -> None:
    found = read(
        "{pinMemory: true, pools: ["
        "{name: dpdk, exclusive: true, cpuLists: [{cpus: 4, socket: 1}]}, "
        "{name: shared, cpuLists: [{cpus: '2-3, 1'}]}]}"
    )

    assert found.pin_memory
    assert found.pools == (
        StaticPoolConfig(
            "$.spec.pools[0]",
            "dpdk",
            (CpuListConfig("$.spec.pools[0].cpuLists[0]", "4", CpuSet.of(4), 1),),
            exclusive=True,
        ),
        StaticPoolConfig(
            "$.spec.pools[1]",
            "shared",
            (
                CpuListConfig(
                    "$.spec.pools[1].cpuLists[0]", "2-3, 1", CpuSet.of(1, 2, 3)
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("pools", "why"),
    [
        ("{name: a}, {name: a}", "$.spec.pools[1].name: duplicate name"),
        ("{cpuLists: []}", "$.spec.pools[0].name: missing"),
        ("{name: a, cpus: 1}", "$.spec.pools[0].cpus: unknown key"),
        (
            "{name: a, cpuLists: [{socket: 0}]}",
            "$.spec.pools[0].cpuLists[0].cpus: missing, expected CPUs",
        ),
        (
            "{name: a, cpuLists: [{cpus: 1-}]}",
            "$.spec.pools[0].cpuLists[0].cpus: not a CPU or node list: '1-'",
        ),
        (
            "{name: a, cpuLists: [{cpus: 1, socket: -1}]}",
            "$.spec.pools[0].cpuLists[0].socket: expected 0 to 65536, not -1",
        ),
        (
            "{name: a, cpuLists: [{cpus: 1-3}]}, {name: b, cpuLists: [{cpus: 3-4}]}",
            "$.spec.pools[1].cpuLists[0].cpus: CPU 3 is in the list '1-3' of a already",
        ),
        (
            "{name: a, cpuLists: [{cpus: 1}, {cpus: 1}]}",
            "$.spec.pools[0].cpuLists[1].cpus: CPU 1 is in the list '1' of a already",
        ),
        (
            "{name: shared, exclusive: true, cpuLists: [{cpus: 1}]}",
            "$.spec.pools[0].exclusive: containers that name no pool share this one",
        ),
        ("{name: shared}", "$.spec.pools[0].cpuLists: missing"),
    ],
)
def test_mistakes(pools: str, why: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(why)):
        read(f"{{pools: [{pools}]}}")


@pytest.mark.parametrize(
    ("pools", "machine", "why"),
    [
        (
            "{name: a, cpuLists: [{cpus: 3-5}]}",
            "1s1n4c1t",
            "$.spec.pools[0].cpuLists[0].cpus: this machine has no CPU 4-5",
        ),
        (
            "{name: a, cpuLists: [{cpus: 0-3}]}",
            "1s1n4c1t",
            "$.spec.pools: no CPU is left for containers that name no pool",
        ),
        (
            "{name: shared, cpuLists: [{cpus: 3}]}",
            "1s1n4c1t offline=3",
            "$.spec.pools[0].cpuLists: no CPU of the pool shared is online",
        ),
    ],
)
def test_documents_for_another_machine(pools: str, machine: str, why: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(why)):
        pools_of(f"{{pools: [{pools}]}}", machine)


def test_sockets_are_derived_from_the_machine_unless_given() -> None:
    lists = "{cpus: 1}, {cpus: 4-5}, {cpus: 2, socket: 9}, {cpus: '3,6'}, {cpus: 7}"
    found = pools_of(f"{{pools: [{{name: a, cpuLists: [{lists}]}}]}}", "2s1n4c1t")

    assert [one.socket for one in found[0].lists] == [0, 1, 9, -1, 1]


def test_cpus_of_no_pool_are_shared_and_isolated_ones_are_not() -> None:
    spec = "{pools: [{name: a, cpuLists: [{cpus: 1}]}]}"

    assert pools_of(spec, "2s1n4c1t isolated=1,7")[1] == StaticPool(
        "shared", (CpuList("0,2-6", CpuSet.parse("0,2-6"), -1),)
    )
    only = pools_of(spec, "1s1n4c1t isolated=0,2-3")[1]
    assert only.cpus == CpuSet.parse("0,2-3")
