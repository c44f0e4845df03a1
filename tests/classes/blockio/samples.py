"""The machine and the cgroups of the block I/O cases."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nri_resmgr.classes.blockio import (
    BlockDevice,
    BlockIoClass,
    BlockIoConfig,
    DeviceNumber,
    Features,
    MatchedDevices,
    patterns_of,
    resolve,
)
from nri_resmgr.config.blockio import read_block_io_classes
from nri_resmgr.config.table import Table
from tests.fast_yaml import read_yaml

CASES = Path(__file__).parent / "cases"

DEVICES = {
    "sda": BlockDevice(DeviceNumber(8, 0), "sda", "bfq"),
    "sdb": BlockDevice(DeviceNumber(8, 16), "sdb", "mq-deadline"),
    "sdq": BlockDevice(DeviceNumber(65, 0), "sdq", "bfq"),
    "vda": BlockDevice(DeviceNumber(254, 0), "vda"),
    "nvme0n1": BlockDevice(DeviceNumber(259, 0), "nvme0n1", "none"),
}

V1_THROTTLES = {
    f"blkio.throttle.{way}_{unit}_device"
    for way in ("read", "write")
    for unit in ("bps", "iops")
}
CGROUPS = {
    "v1": Features.of(
        frozenset({"blkio.weight", "blkio.weight_device", *V1_THROTTLES}), is_v2=False
    ),
    "v1-bfq": Features.of(
        frozenset({"blkio.bfq.weight", "blkio.bfq.weight_device", *V1_THROTTLES}),
        is_v2=False,
    ),
    "v2": Features.of(frozenset({"io.weight", "io.max", "io.stat"}), is_v2=True),
    "v2-bfq": Features.of(
        frozenset({"io.bfq.weight", "io.weight", "io.max"}), is_v2=True
    ),
    "v2-bare": Features.of(frozenset({"io.pressure"}), is_v2=True),
}


def cases(*names: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{name}: {case['name']}", case)
        for name in names
        for case in read_yaml(CASES / f"{name}.yaml")
    ]


def devices_of(pattern: str) -> MatchedDevices:
    return MatchedDevices(
        tuple(d for n, d in DEVICES.items() if fnmatchcase(f"/dev/{n}", pattern))
    )


def classes_of(document: object) -> BlockIoConfig:
    return read_block_io_classes(Table.read(document, "Classes"), "Classes")


def resolved(document: object) -> dict[str, BlockIoClass]:
    config = classes_of(document)
    return resolve(config, {name: devices_of(name) for name in patterns_of(config)})


def one_class(sets: object) -> BlockIoClass:
    """Resolve a class by its sets, which are given as in goresctrl's files."""
    return resolved({"Classes": {"some": sets}})["some"]
