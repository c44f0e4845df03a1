"""Devices, resctrl, uncore, Speed Select and cgroups, out of their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.tree import BadHostFile, HostTree, MissingHostFile
from nri_resmgr.topology import (
    CgroupLayout,
    Device,
    DeviceKind,
    Machine,
    Rdt,
    RdtResource,
    Uncore,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz

BASE = sysfs_files(parse_spec("2s2c cxl=1Gi"))
PCI = "/sys/devices/pci0000:00/0000:00:02.0"
NVME = "/sys/devices/pci0000:80/0000:80:01.0"
RESCTRL = "/sys/fs/resctrl"
UNCORE = "/sys/devices/system/cpu/intel_uncore_frequency"


def read_with(files: dict[str, str], links: dict[str, str] | None = None) -> Machine:
    return read_machine(
        RecordedTree({**BASE.files, **files}, {**BASE.links, **(links or {})})
    )


def test_a_device_is_near_the_cpus_of_its_node() -> None:
    machine = read_with(
        {f"{NVME}/numa_node": "1"},
        {
            "/sys/bus/pci/devices/0000:80:01.0": NVME,
            "/sys/class/block/nvme0n1": f"{NVME}/nvme/nvme0/nvme0n1",
            "/sys/class/net/eth0": f"{NVME}/net/eth0",
            "/sys/class/net/veth7": "/sys/devices/virtual/net/veth7",
        },
    )

    near = CpuSet.of(2, 3)
    assert machine.devices == (
        Device(DeviceKind.PCI, "0000:80:01.0", NVME, 1, near),
        Device(DeviceKind.BLOCK, "nvme0n1", f"{NVME}/nvme/nvme0/nvme0n1", 1, near),
        Device(DeviceKind.NET, "eth0", f"{NVME}/net/eth0", 1, near),
    )


@pytest.mark.parametrize(
    ("files", "node", "cpus"),
    [
        pytest.param({f"{PCI}/numa_node": "-1"}, None, "0-3", id="unknown"),
        pytest.param({f"{PCI}/vendor": "0x8086"}, None, "0-3", id="no file"),
        pytest.param({f"{PCI}/numa_node": "7"}, None, "0-3", id="a node not online"),
        pytest.param({f"{PCI}/numa_node": "2"}, 2, "0-3", id="a node without CPUs"),
        pytest.param(
            {
                f"{PCI}/numa_node": "-1",
                "/sys/devices/pci0000:00/pci_bus/0000:00/cpulistaffinity": "2-3,9",
            },
            None,
            "2-3",
            id="only the bus knows",
        ),
    ],
)
def test_a_device_of_which_little_is_known(
    files: dict[str, str], node: int | None, cpus: str
) -> None:
    machine = read_with(files, {"/sys/bus/pci/devices/0000:00:02.0": PCI})

    assert [(device.node, str(device.cpus)) for device in machine.devices] == [
        (node, cpus)
    ]


RDT_FILES = {
    "/proc/mounts": f"proc /proc proc rw 0 0\nresctrl {RESCTRL} resctrl rw,cdpl2 0 0",
    f"{RESCTRL}/info/L3/num_closids": "16",
    f"{RESCTRL}/info/L3/cbm_mask": "fff",
    f"{RESCTRL}/info/L3/min_cbm_bits": "1",
    f"{RESCTRL}/info/L3/sparse_masks": "1",
    f"{RESCTRL}/info/L2CODE/num_closids": "4",
    f"{RESCTRL}/info/L2CODE/cbm_mask": "ff",
    f"{RESCTRL}/info/L2CODE/min_cbm_bits": "2",
    f"{RESCTRL}/info/MB/num_closids": "8",
    f"{RESCTRL}/info/MB/min_bandwidth": "10",
    f"{RESCTRL}/info/MB/bandwidth_gran": "5",
    f"{RESCTRL}/info/L3_MON/num_rmids": "176",
    f"{RESCTRL}/info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes",
    f"{RESCTRL}/info/last_cmd_status": "ok",
}


def test_the_resources_of_resctrl_are_read() -> None:
    assert read_with(RDT_FILES).rdt == Rdt(
        mount=RESCTRL,
        options=("rw", "cdpl2"),
        resources=(
            RdtResource("L2CODE", closids=4, mask=0xFF, min_bits=2),
            RdtResource("L3", closids=16, mask=0xFFF, min_bits=1, sparse=True),
            RdtResource("MB", closids=8, min_percent=10, step_percent=5),
        ),
        rmids=176,
        features=("llc_occupancy", "mbm_total_bytes"),
    )


def test_resctrl_counts_only_when_mounted() -> None:
    assert (
        read_with({**RDT_FILES, "/proc/mounts": "proc /proc proc rw 0 0"}).rdt is None
    )


def test_bad_files_of_resctrl_are_named() -> None:
    mask = f"{RESCTRL}/info/L3/cbm_mask"

    with pytest.raises(BadHostFile, match="not a hexadecimal mask: 'xyz'"):
        read_with({**RDT_FILES, mask: "xyz"})
    with pytest.raises(MissingHostFile, match="min_cbm_bits"):
        read_with({n: t for n, t in RDT_FILES.items() if "L3/min_cbm" not in n})


def test_uncore_domains_of_dies_and_of_fabrics() -> None:
    machine = read_with(
        {
            f"{UNCORE}/package_01_die_00/initial_min_freq_khz": "800000",
            f"{UNCORE}/package_01_die_00/initial_max_freq_khz": "2400000",
            f"{UNCORE}/uncore03/package_id": "1",
            f"{UNCORE}/uncore03/domain_id": "2",
        }
    )

    assert machine.uncore == (
        Uncore("package_01_die_00", 1, 0, None, KiloHertz(800000), KiloHertz(2400000)),
        Uncore("uncore03", 1, None, 2, None, None),
    )


@pytest.mark.parametrize(
    ("file", "layout"),
    [
        ("cgroup.controllers", CgroupLayout.V2),
        ("unified/cgroup.controllers", CgroupLayout.HYBRID),
        ("cpuset/cpuset.cpus", CgroupLayout.V1),
        ("nothing", None),
    ],
)
def test_how_cgroups_are_mounted(file: str, layout: CgroupLayout | None) -> None:
    assert read_with({f"/sys/fs/cgroup/{file}": ""}).cgroup is layout


def test_speed_select_is_there_when_its_device_is() -> None:
    assert not read_with({}).has_speed_select
    assert read_with({"/dev/isst_interface": ""}).has_speed_select


def test_links_that_leave_the_root_lead_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "host"
    (root / "sys").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (root / "sys/out").symlink_to(tmp_path / "secret")
    (root / "sys/in").symlink_to("../sys")
    (root / "sys/gone").symlink_to("nowhere")
    tree = HostTree(root)

    assert [tree.target(f"/sys/{name}") for name in ("out", "in", "gone")] == [
        None,
        "/sys",
        None,
    ]
