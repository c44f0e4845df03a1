"""Machines of the kinds that exist, as short specs, and what their models say."""

from __future__ import annotations

from typing import Any

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec


def facts(machine: Machine) -> dict[str, Any]:
    """Say what the model says, in few words; memory in GiB."""
    return {
        "packages": [str(package.cpus) for package in machine.packages],
        "dies": [(die.package, die.id, str(die.cpus)) for die in machine.dies],
        "clusters": [str(cluster.cpus) for cluster in machine.clusters],
        "cores": " ".join(str(core.cpus) for core in machine.cores),
        "kinds": {str(kind): str(machine.cpus_of_kind(kind)) for kind in machine.kinds},
        "l3": [str(cache.cpus) for cache in machine.caches_at(3)],
        "nodes": [
            (n.id, str(n.cpus), n.memory >> 30, str(n.kind)) for n in machine.nodes
        ],
        "distances": [list(row) for row in machine.distances],
    }


HYBRID_DESKTOP = {
    "packages": ["0-11"],
    "dies": [(0, 0, "0-11")],
    "clusters": ["0-1", "2-3", "4-7", "8-11"],
    "cores": "0-1 2-3 4 5 6 7 8 9 10 11",
    "kinds": {"performance": "0-3", "efficient": "4-11"},
    "l3": ["0-11"],
    "nodes": [(0, "0-11", 16, "dram")],
    "distances": [[10]],
}

TWO_SOCKETS_SNC = {
    "packages": ["0-3,8-11", "4-7,12-15"],
    "dies": [(0, 0, "0-3,8-11"), (1, 0, "4-7,12-15")],
    "clusters": [],
    "cores": "0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15",
    "kinds": {"performance": "0-15"},
    # Sub-NUMA clustering splits the memory, the cache stays whole.
    "l3": ["0-3,8-11", "4-7,12-15"],
    "nodes": [
        (0, "0-1,8-9", 64, "dram"),
        (1, "2-3,10-11", 64, "dram"),
        (2, "4-5,12-13", 64, "dram"),
        (3, "6-7,14-15", 64, "dram"),
    ],
    "distances": [
        [10, 12, 21, 21],
        [12, 10, 21, 21],
        [21, 21, 10, 12],
        [21, 21, 12, 10],
    ],
}

FOUR_SOCKETS = {
    "packages": ["0-1", "2-3", "4-5", "6-7"],
    "dies": [(0, 0, "0-1"), (1, 0, "2-3"), (2, 0, "4-5"), (3, 0, "6-7")],
    "clusters": [],
    "cores": "0 1 2 3 4 5 6 7",
    "kinds": {"performance": "0-7"},
    "l3": ["0-1", "2-3", "4-5", "6-7"],
    "nodes": [
        (0, "0-1", 16, "dram"),
        (1, "2-3", 16, "dram"),
        (2, "4-5", 16, "dram"),
        (3, "6-7", 16, "dram"),
    ],
    # A ring: the opposite socket is two hops away.
    "distances": [
        [10, 21, 31, 21],
        [21, 10, 21, 31],
        [31, 21, 10, 21],
        [21, 31, 21, 10],
    ],
}

AMD_MANY_L3 = {
    "packages": ["0-15"],
    "dies": [(0, 0, "0-15")],
    "clusters": [],
    "cores": "0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15",
    "kinds": {"performance": "0-15"},
    "l3": ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"],
    "nodes": [(0, "0-3,8-11", 16, "dram"), (1, "4-7,12-15", 16, "dram")],
    "distances": [[10, 12], [12, 10]],
}

TWO_DIES = {
    "packages": ["0-3", "4-7"],
    # Die ids start again in every package.
    "dies": [(0, 0, "0-1"), (0, 1, "2-3"), (1, 0, "4-5"), (1, 1, "6-7")],
    "clusters": [],
    "cores": "0 1 2 3 4 5 6 7",
    "kinds": {"performance": "0-7"},
    "l3": ["0-1", "2-3", "4-5", "6-7"],
    "nodes": [
        (0, "0-1", 16, "dram"),
        (1, "2-3", 16, "dram"),
        (2, "4-5", 16, "dram"),
        (3, "6-7", 16, "dram"),
    ],
    "distances": [
        [10, 12, 21, 21],
        [12, 10, 21, 21],
        [21, 21, 10, 12],
        [21, 21, 12, 10],
    ],
}

ARM_CLUSTERS = {
    "packages": ["0-7", "8-15"],
    "dies": [(0, 0, "0-7"), (1, 0, "8-15")],
    "clusters": ["0-3", "4-7", "8-11", "12-15"],
    "cores": " ".join(map(str, range(16))),
    "kinds": {"performance": "0-15"},
    "l3": ["0-7", "8-15"],
    "nodes": [(0, "0-7", 16, "dram"), (1, "8-15", 16, "dram")],
    "distances": [[10, 21], [21, 10]],
}

HBM_FLAT = {
    "packages": ["0-1", "2-3"],
    "dies": [(0, 0, "0-1"), (1, 0, "2-3")],
    "clusters": [],
    "cores": "0 1 2 3",
    "kinds": {"performance": "0-3"},
    "l3": ["0-1", "2-3"],
    "nodes": [
        (0, "0-1", 128, "dram"),
        (1, "2-3", 128, "dram"),
        (2, "", 64, "hbm"),
        (3, "", 64, "hbm"),
    ],
    "distances": [
        [10, 21, 13, 24],
        [21, 10, 24, 13],
        [13, 24, 10, 27],
        [24, 13, 27, 10],
    ],
}

CXL_EXPANDER = {
    "packages": ["0-1"],
    "dies": [(0, 0, "0-1")],
    "clusters": [],
    "cores": "0 1",
    "kinds": {"performance": "0-1"},
    "l3": ["0-1"],
    "nodes": [(0, "0-1", 64, "dram"), (1, "", 256, "cxl")],
    "distances": [[10, 24], [24, 10]],
}

ONE_CPU = {
    "packages": ["0"],
    "dies": [(0, 0, "0")],
    "clusters": [],
    "cores": "0",
    "kinds": {"performance": "0"},
    "l3": ["0"],
    "nodes": [(0, "0", 1, "dram")],
    "distances": [[10]],
}

SPARSE_NODES = {
    "packages": ["0-1", "2-3"],
    "dies": [(0, 0, "0-1"), (1, 0, "2-3")],
    "clusters": [],
    "cores": "0 1 2 3",
    "kinds": {"performance": "0-3"},
    "l3": ["0-1", "2-3"],
    "nodes": [
        (0, "0-1", 32, "dram"),
        (8, "2-3", 0, "dram"),
        (252, "", 0, "dram"),  # a placeholder for the memory of a GPU
        (255, "", 512, "pmem"),
    ],
    "distances": [
        [10, 40, 80, 80],
        [40, 10, 80, 80],
        [80, 80, 10, 80],
        [80, 80, 80, 10],
    ],
}

_GPU_DISTANCES = "10,40,80,80;40,10,80,80;80,80,10,80;80,80,80,10"

KNOWN = [
    pytest.param("1s2c2t8e", HYBRID_DESKTOP, id="hybrid desktop"),
    pytest.param("2s2n2c2t memory=64Gi", TWO_SOCKETS_SNC, id="two sockets with SNC"),
    pytest.param(
        "4s2c distances=10,21,31,21;21,10,21,31;31,21,10,21;21,31,21,10",
        FOUR_SOCKETS,
        id="four sockets in a ring",
    ),
    pytest.param("1s2n4c2t l3=2", AMD_MANY_L3, id="AMD with many level 3 caches"),
    pytest.param("2s2d2c", TWO_DIES, id="two dies per socket"),
    pytest.param("2s8c cluster=4", ARM_CLUSTERS, id="ARM with clusters"),
    pytest.param("2s2c memory=128Gi hbm=2x64Gi", HBM_FLAT, id="HBM in flat mode"),
    pytest.param("1s2c memory=64Gi cxl=256Gi:movable", CXL_EXPANDER, id="CXL expander"),
    pytest.param("1s1c memory=1Gi", ONE_CPU, id="virtual machine with one CPU"),
    pytest.param(
        "2s2c memory=32Gi,0 dram=0 pmem=512Gi ids=0,8,252,255 "
        f"distances={_GPU_DISTANCES}",
        SPARSE_NODES,
        id="sparse nodes, some of them empty",
    ),
]


@pytest.mark.parametrize(("spec", "expected"), KNOWN)
def test_the_spec_builds_the_machine(spec: str, expected: dict[str, Any]) -> None:
    assert facts(parse_spec(spec)) == expected


@pytest.mark.parametrize(("spec", "expected"), KNOWN)
def test_the_sysfs_of_the_spec_gives_the_same_machine(
    spec: str, expected: dict[str, Any]
) -> None:
    assert facts(read_machine(sysfs_files(parse_spec(spec)))) == expected
