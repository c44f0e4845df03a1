"""Where the Speed Select device is looked for, and what is kept of its answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import load_dump, load_files, write_dump
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.speed_select import Clos, Feature, Punit
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.host.isst_driver import RecordedIsst
from tests.host.isst_header import tpmi

DEVICE = "/dev/isst_interface"
PLAIN = parse_spec("2c")
MACHINE = msgspec.structs.replace(
    PLAIN,
    has_speed_select=True,
    speed_select=(
        Punit(
            *(0, 0, CpuSet.of(0, 1)),
            power=Feature.ON,
            clos=(Clos(cpus=CpuSet.of(0)), Clos(cpus=CpuSet.of(1)), Clos(), Clos()),
        ),
    ),
)
TREE = msgspec.structs.replace(
    sysfs_files(PLAIN), links={DEVICE: DEVICE}, isst=RecordedIsst(tpmi(MACHINE))
)
SILENT = msgspec.structs.replace(MACHINE, speed_select=())


def read(tree: Tree) -> tuple[Machine, list[str]]:
    """Read a machine; return why it has no facts."""
    with capture_logs() as logs:
        found = read_machine(tree)
    return found, [str(e["why"]) for e in logs if e["event"] == "topology.fallback"]


def test_without_the_device_nothing_is_missed() -> None:
    assert read(sysfs_files(PLAIN)) == (PLAIN, [])


def test_a_dump_keeps_the_facts_and_not_the_device(tmp_path: Path) -> None:
    path = tmp_path / "machine.tar.gz"

    assert write_dump(TREE, path) == MACHINE
    assert load_dump(path) == MACHINE
    assert read(load_files(path)) == (SILENT, ["the device was not recorded"])


def test_the_device_is_looked_for_below_the_hosts_root(tmp_path: Path) -> None:
    write_tree(sysfs_files(PLAIN), tmp_path)
    device = tmp_path / "dev/isst_interface"
    device.parent.mkdir()
    device.write_text("")

    # The kernel itself says that a file is no such device.
    assert read(HostTree(tmp_path)) == (
        SILENT,
        ["[Errno 25] Inappropriate ioctl for device"],
    )


def test_a_device_that_cannot_be_opened_is_not_fatal(tmp_path: Path) -> None:
    write_tree(sysfs_files(PLAIN), tmp_path)
    (tmp_path / "dev").mkdir()
    # Nothing listens at a socket's file, and not even root can open it.
    command = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    path = tmp_path / "dev/isst_interface"
    subprocess.run(
        [sys.executable, "-c", command, path.name], cwd=path.parent, check=True
    )

    machine, (why,) = read(HostTree(tmp_path))
    assert (machine, why.split(":")[0]) == (
        SILENT,
        "[Errno 6] No such device or address",
    )


@pytest.mark.parametrize("device", [False, True])
def test_the_code_is_loaded_only_where_the_device_is(
    tmp_path: Path, *, device: bool
) -> None:
    write_tree(sysfs_files(PLAIN), tmp_path)
    if device:
        (tmp_path / "dev").mkdir()
        (tmp_path / "dev/isst_interface").write_text("")
    program = """
import sys
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
read_machine(HostTree(sys.argv[1]))
print("nri_resmgr.host.speed_select.isst" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == str(device)
