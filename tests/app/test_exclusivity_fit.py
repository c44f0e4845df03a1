"""The exclusivity that a document asks for, held against a host."""

from __future__ import annotations

import pytest

from nri_resmgr.app.configuration.build import host_warnings
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.policies import parse_config
from nri_resmgr.topology.synthetic import parse_spec

MACHINE = parse_spec("1s4c2t memory=8Gi")
TOP = "/sys/fs/cgroup"
V1 = {f"{TOP}/cpuset/cpuset.cpus": "0-7"}
V2 = {
    f"{TOP}/cgroup.controllers": "cpuset",
    f"{TOP}/kubepods/cpuset.cpus.exclusive": "",
}


@pytest.mark.parametrize("kind", ["TopologyAware", "Balloons", "Static"])
def test_a_host_without_partitions_falls_back_to_cpusets(kind: str) -> None:
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}Policy\nspec: "

    for word in ("partition", "isolated-partition"):
        config = parse_config(f"{text}{{exclusivity: {word}}}")
        assert host_warnings(config, MACHINE, RecordedTree(V2)) == ()
        [(path, why)] = host_warnings(config, MACHINE, RecordedTree(V1))
        assert path == "$.spec.exclusivity"
        assert why == (
            "this host has cgroup v1; partitions need cgroup v2; the cpusets of all "
            "other containers keep them off exclusive CPUs instead, and host "
            "processes stay on these"
        )
    config = parse_config(f"{text}{{exclusivity: cpuset}}")
    assert host_warnings(config, MACHINE, RecordedTree(V1)) == ()
