"""What metrics say of pools, memory and containers, under each policy."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from nri_resmgr.app.metrics.of_state import series_of_state
from nri_resmgr.app.metrics.of_versions import series_of_versions
from nri_resmgr.app.metrics.table import METRICS
from nri_resmgr.app.metrics.text import Kind, render
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.policies import parse_config
from nri_resmgr.process.own_metrics import series_of_process
from nri_resmgr.stub.model import Container, LinuxContainer, LinuxPod, Pod
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.app.node import asking_for

MACHINE: Final = parse_spec("1s2n2c2t")
TREE: Final = sysfs_files(MACHINE)
PODS: Final = (
    Workload("own", QosClass.GUARANTEED, 2000),
    Workload("many", QosClass.BURSTABLE, 500),
    Workload("least", QosClass.BEST_EFFORT),
)
BALLOONS: Final = """
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: cpuset:0}
  balloonTypes: [{name: web, namespaces: ["*"], minCPUs: 2, maxCPUs: 4}]
"""
STATIC: Final = """
apiVersion: config.nri/v1alpha1
kind: StaticPolicy
spec: {reservedResources: {cpu: cpuset:0}}
"""
DOCUMENTS: Final = (
    pytest.param("", id="topology-aware"),
    pytest.param(BALLOONS, id="balloons"),
    pytest.param(STATIC, id="static"),
)


def policy(document: str) -> ResourcePolicy:
    made = ResourcePolicy(MACHINE, parse_config(document))
    for one in PODS:
        made.create_container(one.pod, one.container)
    return made


def reported(document: str, *, per_container: bool = False) -> dict[str, float]:
    series = series_of_state(policy(document), TREE, per_container=per_container)
    lines = render(series).splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_metrics_of_every_policy_are_as_in_the_table(document: str) -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="an extra of tests")
    text = render(
        [
            *series_of_state(policy(document), TREE, per_container=True),
            *series_of_versions("1.2", RuntimeInfo("containerd", "2.1")),
            *series_of_process(),
        ]
    )
    table = {metric.name: metric for metric in METRICS}

    for family in parser.text_string_to_metric_families(text):
        suffix = "_total" if family.type == "counter" else ""
        metric = table[family.name + suffix]
        assert (metric.kind, metric.help) == (Kind(family.type), family.documentation)
        for sample in family.samples:
            assert set(sample.labels) == set(metric.labels)


def test_a_tree_of_pools() -> None:
    found = reported("")
    zone = "nri_policy_topologyaware_zone_cpu_shared"

    expected = {
        'nri_resmgr_policy_info{policy="TopologyAwarePolicy"}': 1,
        'nri_resmgr_containers{cpus="exclusive",qos="Guaranteed"}': 1,
        'nri_resmgr_containers{cpus="shared",qos="Burstable"}': 1,
        'nri_resmgr_containers{cpus="shared",qos="BestEffort"}': 1,
        'nri_resmgr_pool_capacity_cores{pool="socket #0",kind="package"}': 7,
        'nri_resmgr_pool_granted_cores{pool="socket #0",kind="package"}': 2.5,
        'nri_resmgr_pool_exclusive_cpus{pool="socket #0",kind="package"}': 2,
        'nri_resmgr_memory_capacity_bytes{node="0",kind="dram"}': 16 << 30,
        'nri_policy_mem_node_capacity_bytes{node_id="0",node_type="DRAM"}': 16 << 30,
        f'{zone}_capacity_cores{{zone="socket #0"}}': 5,
        f'{zone}_assigned_cores{{zone="socket #0"}}': 0.5,
    }
    assert {name: found.get(name) for name in expected} == expected
    cpus = [found[f'nri_policy_cpu_allocation{{cpu_id="{n}"}}'] for n in range(8)]
    assert sum(cpus) == pytest.approx(2500, abs=8)  # thousandths are rounded down


def test_balloons() -> None:
    found = reported(BALLOONS)
    rows = {k: v for k, v in found.items() if k.startswith("nri_policy_balloons_cores")}
    names = {re.search('balloon="([^"]*)"', row)[1]: n for row, n in rows.items()}  # type: ignore[index] # each has one

    # 2.5 CPUs are asked for, and one is reserved.
    assert names == {"reserved[0]": 1, "web[0]": 3, "default[0]": 0}
    assert all('containers=""' in row for row in rows)
    assert found['nri_resmgr_pool_capacity_cores{pool="web[0]",kind="balloon"}'] == 3


def test_shared_and_exclusive_cpus() -> None:
    found = reported(STATIC)

    assert {k: v for k, v in found.items() if "pool_granted" in k} == {
        'nri_resmgr_pool_granted_cores{pool="exclusive CPUs",kind="exclusive"}': 2,
        'nri_resmgr_pool_granted_cores{pool="shared CPUs",kind="shared"}': 0.5,
        'nri_resmgr_pool_granted_cores{pool="reserved CPUs",kind="reserved"}': 0,
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_pods_are_named_only_if_asked_for(document: str) -> None:
    shown = [
        any(word in name for name in reported(document, per_container=choice))
        for choice in (False, True)
        for word in ("own", "many", "least")
    ]

    assert shown == [False, False, False, True, True, True]


def labels_of_balloons(spec: str, pods: list[tuple[str, list[str]]]) -> dict[str, Any]:
    """Return the labels of the balloons of a node as in nri-plugins' tests."""
    machine = parse_spec("2s2n2c2t")  # n4c16
    head = "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"
    made = ResourcePolicy(machine, parse_config(f"{head}spec: {spec}"))
    for name, containers in pods:
        linux = LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice")
        pod = Pod(id=name, name=name, namespace="default", linux=linux)
        for one in containers:
            resources = LinuxContainer(resources=asking_for(0.1))
            made.create_container(
                pod, Container(id=one, pod_sandbox_id=name, name=one, linux=resources)
            )
    series = series_of_state(made, sysfs_files(machine), per_container=True)
    found = {}
    for line in render(series).splitlines():
        if line.startswith("nri_policy_balloons_cores{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            found[labels["balloon"]] = labels | {"": line.rpartition(" ")[2]}
    return found


def test_a_balloon_as_nri_plugins_shows_it() -> None:
    spec = """
      reservedResources: {cpu: "cpuset:0"}
      balloonTypes:
        - {name: full-core, namespaces: ["*"], minCPUs: 2, maxCPUs: 2, cpuClass: normal}
    """
    found = labels_of_balloons(spec, [("pod0", ["pod0c0", "pod0c1"])])
    balloon = found["full-core[0]"]

    # What its own end-to-end test expects of the first pod.
    documented = {
        "balloon_type": "full-core",
        "containers": "pod0/pod0c0,pod0/pod0c1",
        "cpu_class": "normal",
        "cpus_allowed_count": "2",
        "cpus_count": "2",
        "cpus_max": "2",
        "cpus_min": "2",
        "dies": "p[01]d0",
        "dies_count": "1",
        "groups": "",
        "mems": "[0-3]",
        "numas": "p[01]d0n[0-3]",
        "numas_count": "1",
        "packages": "p[01]",
        "packages_count": "1",
        "sharedidlecpus": "",
        "sharedidlecpus_count": "0",
        "tot_req_millicpu": "(199|200|20[0-6])",  # rounded from shares
        "": "2",
    }
    assert [
        (name, balloon[name])
        for name, pattern in documented.items()
        if not re.fullmatch(pattern, balloon[name])
    ] == []


def test_a_balloon_without_a_limit_on_several_places() -> None:
    spec = """
      reservedResources: {cpu: "cpuset:0"}
      balloonTypes: [{name: wide, namespaces: ["*"], minCPUs: 15}]
    """
    wide = labels_of_balloons(spec, [("pod0", ["pod0c0"])])["wide[0]"]

    shown = ("cpus_max", "numas", "dies", "packages", "mems", "numas_count")
    assert {name: wide[name] for name in shown} == {
        "cpus_max": "0",
        "numas": "p0d0n0,p0d0n1,p1d0n2,p1d0n3",
        "dies": "p0d0,p1d0",
        "packages": "p0,p1",
        "mems": "0,1,2,3",
        "numas_count": "4",
    }
