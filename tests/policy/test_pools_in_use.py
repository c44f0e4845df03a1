"""What each policy says of its pools, and how full they are."""

from __future__ import annotations

from typing import Any

import yaml

from nri_resmgr.config.table import Table
from nri_resmgr.policy.events import Created
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.scenario.rows import ROW_KEYS, read_row
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, NodeSet
from tests.policy.direct import spec_of_row
from tests.policy.stories import policy_of

GIB = 1 << 30
MACHINE = "2s4c1t memory=16Gi isolated=3"


def pools_after(kind: str, spec: str, *rows: dict[str, Any]) -> tuple[PoolUse, ...]:
    """Create containers one after the other; return what is said of the pools."""
    machine = parse_spec(MACHINE)
    policy = policy_of(kind, yaml.safe_load(spec), machine)
    state = policy.start()
    for number, row in enumerate(rows):
        read = read_row(Table.read(row, *ROW_KEYS))
        made = spec_of_row(f"c{number}", read, machine, [])
        state = policy.decide(state, Created(made)).state
    return policy.pools(state)


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def mems(text: str) -> NodeSet:
    return NodeSet.parse(text)


TREE = (
    PoolUse(
        kind="reserved",
        name="reserved CPUs",
        cpus=cpus("0"),
        reserved=cpus("0"),
        capacity=MilliCpus(1000),
        granted=MilliCpus(200),
        free=MilliCpus(800),
        mems=mems("0"),
        containers=("c2",),
    ),
    PoolUse(
        kind="system",
        name="root",
        cpus=cpus("0-7"),
        shared=cpus("1-2,6-7"),
        isolated=cpus("3"),
        exclusive=cpus("4-5"),
        reserved=cpus("0"),
        capacity=MilliCpus(7000),
        granted=MilliCpus(2500),
        free=MilliCpus(3500),
        mems=mems("0-1"),
        memory=Bytes(32 * GIB),
        memory_granted=Bytes(GIB),
    ),
    PoolUse(
        kind="package",
        name="socket #1",
        within="root",
        cpus=cpus("4-7"),
        shared=cpus("6-7"),
        exclusive=cpus("4-5"),
        capacity=MilliCpus(4000),
        granted=MilliCpus(2000),
        free=MilliCpus(2000),
        mems=mems("1"),
        memory=Bytes(16 * GIB),
        memory_granted=Bytes(GIB),
        containers=("c0",),
    ),
    PoolUse(
        kind="package",
        name="socket #0",
        within="root",
        cpus=cpus("0-3"),
        shared=cpus("1-2"),
        isolated=cpus("3"),
        reserved=cpus("0"),
        capacity=MilliCpus(3000),
        granted=MilliCpus(500),
        free=MilliCpus(1500),
        mems=mems("0"),
        memory=Bytes(16 * GIB),
        containers=("c1",),
    ),
)

LABELS = {
    "instance": "0",
    "cpu_class": "",
    "min_cpus": "0",
    "max_cpus": "0",
    "groups": "",
    "components": "",
    "packages": "",
    "dies": "",
    "nodes": "",
}
HERE = {"packages": "0", "dies": "0/0", "nodes": "0"}
NEAR = {"packages": "1", "dies": "1/0", "nodes": "1"}

BALLOONS = {
    "reserved[0]": PoolUse(
        kind="balloon",
        name="reserved[0]",
        cpus=cpus("0"),
        reserved=cpus("0"),
        capacity=MilliCpus(1000),
        granted=MilliCpus(200),
        free=MilliCpus(5800),
        mems=mems("0"),
        memory=Bytes(16 * GIB),
        containers=("c1",),
        labels=LABELS | {"type": "reserved", "min_cpus": "1"} | HERE,
    ),
    "default[0]": PoolUse(
        kind="balloon",
        name="default[0]",
        cpus=cpus(""),
        free=MilliCpus(5000),
        labels=LABELS | {"type": "default"},
    ),
    "web[0]": PoolUse(
        kind="balloon",
        name="web[0]",
        cpus=cpus("4-5"),
        shared=cpus("4-5"),
        idle=cpus("6-7"),
        capacity=MilliCpus(2000),
        granted=MilliCpus(1500),
        free=MilliCpus(1500),
        mems=mems("1"),
        memory=Bytes(16 * GIB),
        memory_granted=Bytes(GIB),
        containers=("c0",),
        labels=LABELS
        | {"type": "web", "cpu_class": "turbo", "groups": "web"}
        | {"min_cpus": "2", "max_cpus": "3"}
        | NEAR,
    ),
    "idle CPUs": PoolUse(
        kind="idle",
        name="idle CPUs",
        cpus=cpus("1-3,6-7"),
        shared=cpus("1-2,6-7"),
        isolated=cpus("3"),
        capacity=MilliCpus(5000),
        free=MilliCpus(5000),
        mems=mems("0-1"),
    ),
}

STATIC = (
    PoolUse(
        kind="exclusive",
        name="exclusive CPUs",
        cpus=cpus("1-3"),
        isolated=cpus("3"),
        exclusive=cpus("1-2"),
        capacity=MilliCpus(7000),
        granted=MilliCpus(2000),
        free=MilliCpus(4000),
        mems=mems("0"),
        containers=("c0",),
    ),
    PoolUse(
        kind="shared",
        name="shared CPUs",
        cpus=cpus("0,4-7"),
        shared=cpus("4-7"),
        reserved=cpus("0"),
        capacity=MilliCpus(5000),
        granted=MilliCpus(500),
        free=MilliCpus(4500),
        mems=mems("0-1"),
        containers=("c1",),
    ),
    PoolUse(
        kind="reserved",
        name="reserved CPUs",
        within="shared CPUs",
        cpus=cpus("0"),
        reserved=cpus("0"),
        capacity=MilliCpus(1000),
        granted=MilliCpus(200),
        free=MilliCpus(800),
        mems=mems("0"),
        containers=("c2",),
    ),
)


def test_a_tree_reports_the_grants_in_each_pool() -> None:
    found = pools_after(
        "TopologyAwarePolicy",
        "reservedResources: {cpu: 'cpuset:0'}",
        {"guaranteed": 2, "memory": "1Gi"},
        {"burstable": "500m", "limit": "700m"},
        {"burstable": "200m", "namespace": "kube-system"},
        {
            "burstable": 1,
            "annotations": {"cpu.preserve.resource-policy.nri.io": "true"},
        },
    )

    assert found == TREE


def test_balloons_report_their_type_group_place_and_idle_cpus() -> None:
    found = pools_after(
        "BalloonsPolicy",
        """
        reservedResources: {cpu: 'cpuset:0'}
        balloonTypes:
          - name: web
            namespaces: [web]
            groupBy: "${pod/namespace}"
            minCPUs: 2
            maxCPUs: 3
            cpuClass: turbo
            preferCloseToDevices: [/sys/devices/system/node/node1]
            shareIdleCPUsInSame: package
        """,
        {"guaranteed": "1500m", "memory": "1Gi", "namespace": "web"},
        {"burstable": "200m", "namespace": "kube-system"},
        {
            "burstable": 1,
            "annotations": {"cpu.preserve.resource-policy.nri.io": "true"},
        },
    )

    assert {one.name: one for one in found} == BALLOONS


def test_components_come_after_their_balloon_with_equal_parts_of_its_load() -> None:
    found = pools_after(
        "BalloonsPolicy",
        """
        balloonTypes:
          - name: both
            namespaces: ["*"]
            components: [{balloonType: left}, {balloonType: right}]
          - {name: left, preferCloseToDevices: [/sys/devices/system/node/node0]}
          - {name: right, preferCloseToDevices: [/sys/devices/system/node/node1]}
        """,
        {"guaranteed": 3},
    )

    assert [
        (one.name, one.within, len(one.cpus), one.granted, one.containers)
        for one in found
        if one.containers or one.within
    ] == [
        ("both[0]", "", 4, 3000, ("c0",)),
        ("left[0]", "both[0]", 2, 1500, ()),
        ("right[0]", "both[0]", 2, 1500, ()),
    ]


def test_static_policies_report_exclusive_shared_and_reserved_cpus() -> None:
    found = pools_after(
        "StaticPolicy",
        "reservedResources: {cpu: 'cpuset:0'}",
        {"guaranteed": 2},
        {"burstable": "500m"},
        {"burstable": "200m", "namespace": "kube-system"},
    )

    assert found == STATIC
