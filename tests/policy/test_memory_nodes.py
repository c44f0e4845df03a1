from __future__ import annotations

import pytest

from nri_resmgr.policy.cpu_pools import nodes_near
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet


@pytest.mark.parametrize(
    ("machine", "cpus", "nodes"),
    [
        pytest.param("2s1n2c1t", "2-3", "1", id="their own node"),
        pytest.param("2s1n2c1t", "1-2", "0-1", id="both of two"),
        pytest.param("1s2n2c1t memory=16Gi,0", "2-3", "0", id="the nearest with any"),
        pytest.param("1s2n2c1t memory=0,0", "2-3", "", id="no node has any"),
        pytest.param("1s1n1c1t", "", "", id="no CPUs need none"),
        pytest.param(
            "2s1n2c1t memory=0,16Gi dram=2x16Gi:movable "
            "distances=10,21,11,30;21,10,30,11;11,30,10,40;30,11,40,10",
            "0-1",
            "1-2",
            id="movable memory needs normal memory besides",
        ),
        pytest.param(
            "3s1n1c1t memory=0,16Gi,16Gi dram=1x16Gi:movable "
            "distances=10,21,31,11;21,10,21,20;31,21,10,30;11,20,30,10",
            "0",
            "1,3",
            id="only the nearest normal memory",
        ),
    ],
)
def test_memory_is_where_it_is_near(machine: str, cpus: str, nodes: str) -> None:
    assert str(nodes_near(CpuSet.parse(cpus), parse_spec(machine))) == nodes
