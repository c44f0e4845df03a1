"""What the user says of memory has precedence over all evidence."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec

DRAM, HBM = MemoryKind.DRAM, MemoryKind.HBM
PMEM, CXL = MemoryKind.PMEM, MemoryKind.CXL

# Nodes 0 and 1 have CPUs, 2 is PMEM, 3 is CXL, 4 has no memory.
MACHINE = parse_spec("2s1c memory=4Gi pmem=1x8Gi cxl=1x8Gi dram=1x0")


def kinds(machine: Machine) -> str:
    return " ".join(node.kind for node in machine.nodes)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param({}, "dram dram pmem cxl dram", id="nothing"),
        pytest.param({2: CXL}, "dram dram cxl cxl dram", id="against a region"),
        pytest.param({3: DRAM}, "dram dram pmem dram dram", id="plain memory"),
        pytest.param(
            {0: HBM, 1: HBM}, "hbm hbm pmem cxl dram", id="of nodes with CPUs"
        ),
    ],
)
def test_given_kinds_are_used(given: dict[int, MemoryKind], found: str) -> None:
    machine = read_machine(sysfs_files(MACHINE), given)

    assert kinds(machine) == found
    nodes = (replace(n, kind=given.get(n.id, n.kind)) for n in MACHINE.nodes)
    assert machine == replace(MACHINE, nodes=tuple(nodes))


def test_given_kinds_replace_all_guesses() -> None:
    files = sysfs_files(MACHINE).files
    bare = RecordedTree({key: files[key] for key in files if "access0" not in key})
    bare = msgspec.structs.replace(
        bare, files={key: bare.files[key] for key in bare.files if "/nd/" not in key}
    )
    with capture_logs() as logs:
        machine = read_machine(bare, {2: HBM, 3: CXL})

    assert (kinds(machine), logs) == ("dram dram hbm cxl dram", [])


def test_other_kinds_are_guessed_by_comparison_with_dram() -> None:
    given = sysfs_files(MACHINE).files
    speeds = {0: 800_000, 1: 200_000, 2: 200_000, 3: 100_000}
    files = {key: given[key] for key in given if "dax" not in key and "/nd/" not in key}
    for node, speed in speeds.items():
        folder = f"/sys/devices/system/node/node{node}/access0/initiators"
        files[f"{folder}/read_bandwidth"] = str(speed)
    tree = RecordedTree(files)

    assert kinds(read_machine(tree, {0: HBM})) == "hbm dram dram cxl dram"
    assert kinds(read_machine(tree, {1: HBM, 2: DRAM})) == "dram hbm dram cxl dram"


@pytest.mark.parametrize("node", [4, 9])
def test_memory_that_may_come_later_is_reported_in_the_log(node: int) -> None:
    with capture_logs() as logs:
        machine = read_machine(sysfs_files(MACHINE), {node: CXL})

    assert machine == MACHINE
    assert logs == [
        {
            "event": "topology.unused",
            "configured": f"node{node} memory kind",
            "log_level": "warning",
        }
    ]


def test_without_numa_the_one_node_is_reported_too() -> None:
    files = sysfs_files(parse_spec("1c memory=1Gi")).files
    tree = RecordedTree({key: files[key] for key in files if "/node" not in key})

    assert kinds(read_machine(tree, {0: HBM})) == "hbm"
