"""Block devices found below a host root, which holds real device files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nri_resmgr.classes.blockio import (
    BlockDevice,
    DeviceNumber,
    Features,
    MatchedDevices,
    Notice,
    NoticeKind,
)
from nri_resmgr.host.block_devices import (
    find_block_devices,
    find_features,
)
from nri_resmgr.host.tree import HostTree

SDA = BlockDevice(DeviceNumber(8, 0), "sda", "bfq")
SDB = BlockDevice(DeviceNumber(8, 16), "sdb", "mq-deadline")
LOOP = BlockDevice(DeviceNumber(7, 0), "loop0", "none")
DM = BlockDevice(DeviceNumber(253, 0), "dm-0")
BARE = BlockDevice(DeviceNumber(99, 9))


def add_disk(root: Path, name: str, number: str, scheduler: str = "") -> Path:
    """Add a disk as sysfs shows it, and its device file."""
    folder = root / "sys/devices/pci0000:00/block" / name
    (folder / "queue").mkdir(parents=True)
    (folder / "dev").write_text(f"{number}\n")
    if scheduler:
        (folder / "queue/scheduler").write_text(f"{scheduler}\n")
    link(root, folder, number)
    make_node(root / "dev" / name, number)
    return folder


def add_partition(root: Path, disk: Path, name: str, number: str) -> None:
    folder = disk / name
    folder.mkdir()
    (folder / "dev").write_text(f"{number}\n")
    (folder / "partition").write_text("1\n")
    link(root, folder, number)
    make_node(root / "dev" / name, number)


def link(root: Path, folder: Path, number: str) -> None:
    by_number = root / "sys/dev/block"
    by_number.mkdir(parents=True, exist_ok=True)
    (by_number / number).symlink_to(os.path.relpath(folder, by_number))


def make_node(path: Path, number: str, kind: int = stat.S_IFBLK) -> None:
    major, minor = number.split(":")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.mknod(path, 0o600 | kind, os.makedev(int(major), int(minor)))
    except PermissionError:
        pytest.skip("device files can be made with CAP_MKNOD only")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sda = add_disk(tmp_path, "sda", "8:0", "none mq-deadline kyber [bfq]")
    add_partition(tmp_path, sda, "sda1", "8:1")
    add_partition(tmp_path, sda, "sda2", "8:2")
    add_disk(tmp_path, "sdb", "8:16", "[mq-deadline] kyber bfq none")
    add_disk(tmp_path, "loop0", "7:0", "none")
    add_disk(tmp_path, "dm-0", "253:0")
    make_node(tmp_path / "dev/bare", "99:9")
    make_node(tmp_path / "dev/tty", "5:0", stat.S_IFCHR)
    (tmp_path / "dev/disk/by-id").mkdir(parents=True)
    links = {
        "dev/disk/by-id/ata-b": "../../sdb",
        "dev/disk/by-id/abs": "/dev/sdb",
        "dev/disk/by-id/twice": "abs",
        "dev/disk/by-id/ata-b-part1": "../../sda1",
        "dev/disk/by-id/dangling": "../../sdz",
        "dev/disk/by-id/loop-a": "loop-b",
        "dev/disk/by-id/loop-b": "loop-a",
        "dev/disk/by-id/above": "../../../../../../../../../dev/sdb",
        "dev/.hidden": "sdb",
    }
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


def nothing(kind: NoticeKind, subject: str) -> MatchedDevices:
    why = {
        NoticeKind.NO_MATCH: "matches no file",
        NoticeKind.NO_BLOCK_DEVICE: "is not a block device, skipped",
    }
    return MatchedDevices((), (Notice(kind, subject, why[kind]),))


def part_of_sda(path: str) -> Notice:
    why = "is a partition, the class applies to the disk sda"
    return Notice(NoticeKind.PARTITION, path, why)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        pytest.param(
            "/dev/sda", MatchedDevices((SDA,)), id="a disk, with its scheduler"
        ),
        pytest.param(
            "/dev/loop0", MatchedDevices((LOOP,)), id="a scheduler without brackets"
        ),
        pytest.param(
            "/dev/dm-0", MatchedDevices((DM,)), id="a device without a scheduler"
        ),
        pytest.param("/dev/bare", MatchedDevices((BARE,)), id="a device without sysfs"),
        pytest.param("/dev/sd[b-z]", MatchedDevices((SDB,)), id="a set"),
        pytest.param("/dev/sd?", MatchedDevices((SDA, SDB)), id="a question mark"),
        pytest.param("/dev/[^.a-rt]d[^a]", MatchedDevices((SDB,)), id="a negated set"),
        pytest.param("/d*/s*b", MatchedDevices((SDB,)), id="a star in every part"),
        pytest.param(
            "/dev/.h*", MatchedDevices((SDB,)), id="a name that begins with a dot"
        ),
        pytest.param(
            "/dev/*hidden", MatchedDevices((SDB,)), id="a star takes such names, too"
        ),
        pytest.param(
            "/dev/disk/by-id/ata-b",
            MatchedDevices((SDB,)),
            id="a relative link is followed",
        ),
        pytest.param(
            "/dev/disk/by-id/abs",
            MatchedDevices((SDB,)),
            id="an absolute link begins at the host's root",
        ),
        pytest.param(
            "/dev/disk/by-id/twice", MatchedDevices((SDB,)), id="a link to a link"
        ),
        pytest.param(
            "/dev/disk/by-id/above",
            MatchedDevices((SDB,)),
            id="nothing is above the root",
        ),
        pytest.param(
            "/dev/disk/by-id/a*s", MatchedDevices((SDB,)), id="a glob of links"
        ),
        pytest.param(
            "/dev/sda1",
            MatchedDevices((SDA,), (part_of_sda("/dev/sda1"),)),
            id="a partition stands for its disk",
        ),
        pytest.param(
            "/dev/sda*",
            MatchedDevices(
                (SDA,), (part_of_sda("/dev/sda1"), part_of_sda("/dev/sda2"))
            ),
            id="a disk and its partitions are one",
        ),
        pytest.param(
            "/dev/disk/by-id/ata-b*",
            MatchedDevices((SDB, SDA), (part_of_sda("/dev/disk/by-id/ata-b-part1"),)),
            id="a link to a partition is reported as it was found",
        ),
        pytest.param(
            "/dev/xvd*", nothing(NoticeKind.NO_MATCH, "/dev/xvd*"), id="no match"
        ),
        pytest.param(
            "/dev/xvda", nothing(NoticeKind.NO_MATCH, "/dev/xvda"), id="no such file"
        ),
        pytest.param(
            "/none/*/x", nothing(NoticeKind.NO_MATCH, "/none/*/x"), id="no such folder"
        ),
        pytest.param(
            "/dev/tty", nothing(NoticeKind.NO_BLOCK_DEVICE, "/dev/tty"), id="a terminal"
        ),
        pytest.param(
            "/dev/disk", nothing(NoticeKind.NO_BLOCK_DEVICE, "/dev/disk"), id="a folder"
        ),
        pytest.param(
            "/dev/disk/by-id/dangling",
            nothing(NoticeKind.NO_BLOCK_DEVICE, "/dev/disk/by-id/dangling"),
            id="a link to nothing",
        ),
        pytest.param(
            "/dev/disk/by-id/loop-a",
            nothing(NoticeKind.NO_BLOCK_DEVICE, "/dev/disk/by-id/loop-a"),
            id="links in a circle",
        ),
    ],
)
def test_a_pattern_names(root: Path, pattern: str, found: MatchedDevices) -> None:
    assert find_block_devices(HostTree(root), (pattern,)) == {pattern: found}


def test_a_star_ends_at_a_slash(root: Path) -> None:
    found = find_block_devices(HostTree(root), ("/dev/*b",))["/dev/*b"]

    assert found.devices == (SDB,)


def test_a_pattern_that_cannot_be_read_is_reported(root: Path) -> None:
    (root / "sys/dev/block/8:16").unlink()
    (root / "sys/dev/block/8:16").mkdir()
    (root / "sys/dev/block/8:16/partition").mkdir()
    found = find_block_devices(HostTree(root), ("/dev/sda", "/dev/sdb"))

    notices = found["/dev/sdb"].notices
    assert found["/dev/sda"] == MatchedDevices((SDA,))
    assert [one.kind for one in notices] == [NoticeKind.UNREADABLE]
    assert "/partition: Is a directory" in str(notices[0])


def test_features_are_read_from_a_cgroup(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup/kubepods.slice"
    folder.mkdir(parents=True)
    for name in ("io.max", "io.bfq.weight", "cpu.max"):
        (folder / name).touch()
    tree = HostTree(tmp_path)

    expected = Features(True, "io.bfq.weight", "io.bfq.weight", True)
    assert (
        Features.of(frozenset(tree.names("/sys/fs/cgroup/kubepods.slice")), is_v2=True)
        == expected
    )
    assert Features.of(
        frozenset(tree.names("/sys/fs/cgroup/none")), is_v2=True
    ) == Features(True, has_throttles=False)


TOP = "/sys/fs/cgroup"
WEIGHED = Features(True, "io.weight")
THROTTLED = Features(True)
NOTHING = Features(True, has_throttles=False)


@pytest.mark.parametrize(
    ("files", "features"),
    [
        pytest.param(
            ("cpu.stat", "system.slice/io.stat", "system.slice/io.max"),
            THROTTLED,
            id="a cgroup under the root",
        ),
        pytest.param(
            (
                "a.slice/cpu.max",
                "b.slice/io.stat",
                "b.slice/io.max",
                "b.slice/io.weight",
            ),
            WEIGHED,
            id="the first one that has the controller",
        ),
        pytest.param(
            ("a.slice/cpu.max", "a.slice/pod/io.stat", "a.slice/pod/io.weight"),
            Features(True, "io.weight", has_throttles=False),
            id="a cgroup two levels down",
        ),
        pytest.param(
            ("io.stat", "io.max", "a.slice/cpu.max", "cgroup.controllers"),
            THROTTLED,
            id="no cgroup has it yet, but one can",
        ),
        pytest.param(("a.slice/cpu.max",), NOTHING, id="no cgroup can have it"),
        pytest.param((), NOTHING, id="no cgroups"),
    ],
)
def test_features_are_found_in_some_cgroup(
    tmp_path: Path, files: tuple[str, ...], features: Features
) -> None:
    for name in files:
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("cpuset cpu io memory\n")

    assert find_features(HostTree(tmp_path), TOP, is_v2=True) == features


def test_features_of_version_1_are_read_from_any_cgroup_but_the_root(
    tmp_path: Path,
) -> None:
    throttle = "blkio.throttle.read_bps_device"
    (tmp_path / "blkio/docker").mkdir(parents=True)
    (tmp_path / "blkio" / throttle).touch()
    at_first = find_features(HostTree(tmp_path), "/blkio", is_v2=False)
    for name in ("cgroup.procs", "blkio.bfq.weight", throttle):
        (tmp_path / "blkio/docker" / name).touch()

    assert at_first == Features(False)
    then = find_features(HostTree(tmp_path), "/blkio", is_v2=False)
    assert then == Features(False, "blkio.bfq.weight")


def test_a_folder_that_leads_out_of_the_host_has_no_devices_of_it(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    make_node(elsewhere / "sda", "8:0")
    (root / "dev/out").symlink_to(elsewhere)

    found = find_block_devices(HostTree(root), ("/dev/out/sda",))
    assert found["/dev/out/sda"] == nothing(NoticeKind.NO_BLOCK_DEVICE, "/dev/out/sda")
