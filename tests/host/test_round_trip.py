"""What is written as sysfs, or dumped, reads back as the same machine."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import BadDump, load_dump, load_files, write_dump
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.paths import CPU_ROOT
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology import (
    CgroupLayout,
    Device,
    DeviceKind,
    Machine,
    Rdt,
    RdtResource,
    Uncore,
)
from nri_resmgr.topology.document import from_document, to_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz
from tests.examples import examples
from tests.host.platforms import with_platform
from tests.topology.strategies import machines

pytestmark = pytest.mark.slow  # writes and reads whole trees of files

RICH = parse_spec("2s2n2c2t l3=1 cxl=2x1Gi pmem=1Gi hbm=1Mi hugepages=2Mi:3 offline=3")

PCI = "/sys/devices/pci0000:00/0000:00:02.0"
NEAR = CpuSet.of(2, 3)
FULL = msgspec.structs.replace(
    parse_spec("2s2c"),
    devices=(
        Device(DeviceKind.PCI, "0000:00:02.0", PCI, 1, NEAR),
        Device(DeviceKind.BLOCK, "sda", f"{PCI}/host0/block/sda", 1, NEAR),
        Device(DeviceKind.NET, "eth0", f"{PCI}/net/eth0", 1, NEAR),
    ),
    uncore=(
        Uncore("package_00_die_00", 0, 0, None, KiloHertz(1), KiloHertz(2)),
        Uncore("uncore00", 1, None, 2, None, KiloHertz(3)),
    ),
    rdt=Rdt(
        "/sys/fs/resctrl", ("rw", "cdp"), (RdtResource("L3", 4, 15, 1),), 8, ("x",)
    ),
    cgroup=CgroupLayout.V2,
)


@given(machines())
@examples(0.6)
def test_sysfs_reports_the_machine_it_was_made_from(machine: Machine) -> None:
    assert read_machine(sysfs_files(machine)) == machine


@given(st.sampled_from([RICH, parse_spec("1s1c")]).flatmap(with_platform))
@examples(0.6)
def test_sysfs_reports_the_platform_it_was_made_from(machine: Machine) -> None:
    assert read_machine(sysfs_files(machine)) == machine


@given(machines())
@examples(0.4)
def test_a_document_holds_the_whole_machine(machine: Machine) -> None:
    assert from_document(to_document(machine)) == machine


def test_more_than_1024_cpus_are_reported_too() -> None:
    machine = parse_spec("4s2n70c2t")

    assert read_machine(sysfs_files(machine)) == machine


@pytest.mark.parametrize("machine", [RICH, FULL], ids=["memory", "platform"])
def test_real_files_and_links_report_the_same(machine: Machine, tmp_path: Path) -> None:
    write_tree(sysfs_files(machine), tmp_path)

    assert read_machine(HostTree(tmp_path)) == machine


def test_that_a_driver_is_there_is_reported_and_no_more(tmp_path: Path) -> None:
    machine = msgspec.structs.replace(parse_spec("1s1c"), has_speed_select=True)
    write_tree(sysfs_files(machine), tmp_path)

    assert read_machine(HostTree(tmp_path)) == machine
    assert read_machine(sysfs_files(machine)) == machine


def test_this_machine_written_as_files_reads_the_same(tmp_path: Path) -> None:
    machine = read_machine(HostTree("/"))
    write_tree(sysfs_files(machine), tmp_path)

    assert read_machine(HostTree(tmp_path)) == msgspec.structs.replace(
        machine, speed_select=()
    )


def test_other_programs_find_the_files_of_a_kernel_and_no_more() -> None:
    files = sysfs_files(FULL).files
    below = f"{CPU_ROOT}/intel_uncore_frequency"

    assert {
        path: text
        for path, text in files.items()
        if path.startswith((PCI, below, CGROUP_ROOT))
    } == {
        f"{CGROUP_ROOT}/cgroup.controllers": (
            "cpuset cpu io memory hugetlb pids rdma misc"
        ),
        f"{PCI}/numa_node": "1",
        f"{PCI}/local_cpulist": "2-3",
        f"{PCI}/host0/block/sda/uevent": "DEVNAME=sda",
        f"{PCI}/net/eth0/uevent": "INTERFACE=eth0",
        f"{below}/package_00_die_00/initial_min_freq_khz": "1",
        f"{below}/package_00_die_00/initial_max_freq_khz": "2",
        f"{below}/uncore00/package_id": "1",
        f"{below}/uncore00/domain_id": "2",
        f"{below}/uncore00/initial_min_freq_khz": "0",
        f"{below}/uncore00/initial_max_freq_khz": "3",
    }


def test_files_are_not_written_among_others(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()

    with pytest.raises(OSError, match="it is not empty; name a new folder"):
        write_tree(sysfs_files(RICH), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes"]


def test_a_dump_loads_again_from_its_model_and_from_its_files(tmp_path: Path) -> None:
    path = tmp_path / "machine.tar.gz"

    assert write_dump(sysfs_files(RICH), path) == RICH
    assert load_dump(path) == RICH
    assert read_machine(load_files(path)) == RICH


def test_a_dump_of_this_machine_needs_this_machine_no_more(tmp_path: Path) -> None:
    path = tmp_path / "machine.tar.gz"
    machine = write_dump(HostTree("/"), path)

    assert load_dump(path) == machine
    assert read_machine(load_files(path)) == machine


@pytest.mark.parametrize(
    ("kept", "then"),
    [
        pytest.param(0, b"", id="empty"),
        pytest.param(0, b"no archive at all", id="something else"),
        pytest.param(100, b"", id="cut short"),
        pytest.param(60, b"\xff" * 200, id="garbled"),
    ],
)
def test_a_damaged_dump_is_refused(kept: int, then: bytes, tmp_path: Path) -> None:
    path = tmp_path / "machine.tar.gz"
    write_dump(sysfs_files(RICH), path)
    path.write_bytes(path.read_bytes()[:kept] + then)

    with pytest.raises(BadDump, match=r"machine\.tar\.gz: not a dump"):
        load_dump(path)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        pytest.param('{"format": 1}', "want a mapping", id="no machine"),
        pytest.param("{", "Expecting property name", id="no JSON"),
        pytest.param('{"format": 2}', "no files of a host", id="another format"),
    ],
)
def test_a_dump_with_a_bad_model_is_refused(
    model: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "machine.json").write_text(model)
    path = tmp_path / "machine.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "machine.json", "machine.json")

    with pytest.raises(BadDump, match=why):
        load_dump(path)


def test_a_dump_that_would_eat_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "machine.tar.gz"
    huge = tarfile.TarInfo("machine.json")
    huge.size = 1 << 29
    with gzip.open(path, "wb") as archive:
        archive.write(huge.tobuf())

    with pytest.raises(BadDump, match=r"it has 512\.0 MiB, and a dump"):
        load_dump(path)
