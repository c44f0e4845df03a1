"""Block I/O classes in the cgroups of a real kernel, whichever version it has."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import msgspec
import pytest

from nri_resmgr.classes.blockio import (
    BlockDevice,
    BlockIoClass,
    DeviceLimits,
    DeviceNumber,
    Features,
    Files,
    IoLimits,
    changes,
    patterns_of,
    resolve,
)
from nri_resmgr.config.blockio import read_block_io_classes
from nri_resmgr.config.table import Table
from nri_resmgr.host.block_devices import (
    find_block_devices,
    find_features,
)
from nri_resmgr.host.cgroups.writes import write_cgroup_files
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.tree import HostTree
from tests.real_host.runs import own_name

pytestmark = pytest.mark.machine

MOUNT = Path("/sys/fs/cgroup")
TREE = HostTree("/")
# Disks and loop devices, not what is stacked on them.
PATTERN = "/dev/[hlnsvx]*[0-9a-z]"


@attrs.frozen
class OwnCgroup:
    """A cgroup of the test's own; no process is ever in it."""

    folder: Path
    features: Features

    def write(self, files: Files) -> list[str]:
        """Write lines; return what the kernel answered to those that it refused."""
        found = write_cgroup_files(WritableHostTree("/"), str(self.folder), files)
        return [one.why for one in found]

    def read(self, file: str) -> list[str]:
        return (self.folder / file).read_text().splitlines()


@pytest.fixture
def cgroup() -> Iterator[OwnCgroup]:
    is_v2 = (MOUNT / "cgroup.controllers").exists()
    top = MOUNT if is_v2 else MOUNT / "blkio"
    folder = top / own_name("block-io")
    switch = top / "cgroup.subtree_control"
    is_ours = is_v2 and "io" not in switch.read_text().split()
    try:
        if is_ours:
            switch.write_text("+io")
        folder.mkdir()
    except OSError as reason:
        pytest.skip(f"no cgroup for block I/O can be made: {reason}")
    try:
        features = Features.of(frozenset(TREE.names(str(folder))), is_v2=is_v2)
        if not features.has_throttles:
            pytest.skip("this kernel throttles no block devices")
        assert find_features(TREE, str(top), is_v2=is_v2) == features
        yield OwnCgroup(folder, features)
    finally:
        remove(folder)
        if is_ours:
            switch.write_text("-io")


def remove(folder: Path) -> None:
    for _ in range(50):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.1)  # the kernel still takes it apart
        else:
            return


@pytest.fixture
def bfq(disks: list[BlockDevice]) -> Iterator[BlockDevice]:
    """A disk that bfq schedules, which only the emulated machine may be made to do."""
    if "NRI_RESMGR_TEST_GUEST" not in os.environ:
        pytest.skip("the I/O scheduler of this machine is not ours to change")
    subprocess.run(("modprobe", "bfq"), check=True)
    scheduler = Path(f"/sys/block/{disks[0].name}/queue/scheduler")
    scheduler.write_text("bfq")
    yield msgspec.structs.replace(disks[0], scheduler="bfq")
    scheduler.write_text(disks[0].scheduler)
    subprocess.run(("modprobe", "-r", "bfq"), check=False)  # unless it is in use


@pytest.fixture(scope="module")
def disks() -> list[BlockDevice]:
    found = find_block_devices(TREE, (PATTERN,))[PATTERN].devices
    whole = [one for one in found if one.name and not one.name.startswith("loop")]
    if not whole:
        pytest.skip("this machine has no disk with a device file")
    return [*whole, *(one for one in found if one.name.startswith("loop"))]


def class_of(*sets: object) -> BlockIoClass:
    config = read_block_io_classes(
        Table("$", {"Classes": {"some": list(sets)}}), "Classes"
    )
    return resolve(config, find_block_devices(TREE, patterns_of(config)))["some"]


def limits_of(cgroup: OwnCgroup) -> dict[str, list[str]]:
    """Read what is limited, in the words of version 2, by device."""
    found: dict[str, list[str]] = {}
    if cgroup.features.is_v2:
        for line in cgroup.read("io.max"):
            device, *words = line.split()
            found[device] = [one for one in words if not one.endswith("=max")]
        return found
    for key in ("rbps", "wbps", "riops", "wiops"):
        way, unit = "read" if key[0] == "r" else "write", key[1:]
        for line in cgroup.read(f"blkio.throttle.{way}_{unit}_device"):
            device, rate = line.split()
            found.setdefault(device, []).append(f"{key}={rate}")
    return found


def test_a_class_holds_changes_and_goes(
    cgroup: OwnCgroup, disks: list[BlockDevice]
) -> None:
    number, path = str(disks[0].number), f"/dev/{disks[0].name}"
    features = cgroup.features
    slow = class_of(
        {"Devices": [path], "ThrottleReadBps": "60M", "ThrottleWriteIOPS": "5k"}
    )
    fast = class_of(
        {"Devices": [path], "ThrottleReadBps": "1G", "ThrottleReadIOPS": 1 << 32}
    )
    refused = cgroup.write(slow.files(features))
    at_first = limits_of(cgroup)
    refused += cgroup.write(changes(slow, fast, features))
    then = limits_of(cgroup)
    refused += cgroup.write(changes(fast, None, features))

    assert refused == []
    assert at_first == {number: ["rbps=60000000", "wiops=5000"]}
    assert then == {number: ["rbps=1000000000"]}
    assert limits_of(cgroup) == {}


def test_a_weight_holds_and_goes(cgroup: OwnCgroup) -> None:
    features = cgroup.features
    if not features.weight_file:
        pytest.skip("this kernel weighs no block I/O")
    before = cgroup.read(features.weight_file)
    heavy = class_of({"Weight": 800})
    cgroup.write(heavy.files(features))
    held = cgroup.read(features.weight_file)
    cgroup.write(changes(heavy, None, features))

    # 790 * 9999 // 990 + 1 where the scale is that of io.weight.
    weight = "7980" if features.weight_file == "io.weight" else "800"
    assert [line.removeprefix("default ") for line in held] == [weight]
    assert cgroup.read(features.weight_file) == before


def test_version_2_reads_one_device_per_write_and_no_zero(
    cgroup: OwnCgroup, disks: list[BlockDevice]
) -> None:
    if not cgroup.features.is_v2 or len(disks) < 2:
        pytest.skip("needs version 2 and two block devices")
    one, other = (f"{disk.number} rbps=5000" for disk in disks[:2])
    both = cgroup.write({"io.max": (f"{one}\n{other}",)})
    zero = cgroup.write({"io.max": (f"{disks[0].number} rbps=0",)})
    cgroup.write({"io.max": (one, other)})

    assert both == ["Invalid argument"]
    assert zero == ["Numerical result out of range"]
    numbers = {str(disk.number): ["rbps=5000"] for disk in disks[:2]}
    assert limits_of(cgroup) == numbers


def test_limits_of_a_removed_device_need_no_write(cgroup: OwnCgroup) -> None:
    gone = BlockDevice(DeviceNumber(4095, 77), "gone")
    some = BlockIoClass("some", devices=(DeviceLimits(gone, IoLimits(read_bps=5000)),))
    features = cgroup.features

    assert cgroup.write(some.files(features)) == []
    assert cgroup.write(changes(some, None, features)) == []
    assert limits_of(cgroup) == {}


def test_bfq_weighs_devices(bfq: BlockDevice, cgroup: OwnCgroup) -> None:
    features = cgroup.features
    heavy = class_of({"Weight": 800}, {"Devices": [f"/dev/{bfq.name}"], "Weight": 50})
    refused = cgroup.write(heavy.files(features))
    held = cgroup.read("io.bfq.weight")
    refused += cgroup.write(changes(heavy, None, features))
    after = cgroup.read("io.bfq.weight")
    cgroup.write({"io.bfq.weight": (f"800\n{bfq.number} 50",)})

    assert refused == []
    assert features == Features(True, "io.bfq.weight", "io.bfq.weight", True)
    assert [one.device for one in heavy.devices] == [bfq]
    assert held == ["default 800", f"{bfq.number} 50"]
    assert after == ["default 100"]
    # Two lines at once do not do what each of them does.
    assert cgroup.read("io.bfq.weight") != held
