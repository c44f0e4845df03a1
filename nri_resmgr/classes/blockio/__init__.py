"""Block I/O classes: weights and throttles of devices under one name.

A library of its own. `values` are classes as configured, and devices. `block_class`
resolves classes on the devices of a machine; `cgroup_files` has the files that they
set.

`nri_resmgr.config.blockio` reads classes of documents,
`find_block_devices` of `nri_resmgr.host.block_devices` finds the devices.
"""

from __future__ import annotations

from nri_resmgr.classes.blockio.block_class import (
    BlockIoClass,
    DeviceLimits,
    changes,
    patterns_of,
    resolve,
)
from nri_resmgr.classes.blockio.cgroup_files import Features, changed_files
from nri_resmgr.classes.blockio.values import (
    BlockDevice,
    BlockIoConfig,
    DeviceNumber,
    IoLimits,
    MatchedDevices,
    Notice,
    NoticeKind,
    ParameterSet,
)
from nri_resmgr.classes.unified import Files, Unified

__all__ = [
    "BlockDevice",
    "BlockIoClass",
    "BlockIoConfig",
    "DeviceLimits",
    "DeviceNumber",
    "Features",
    "Files",
    "IoLimits",
    "MatchedDevices",
    "Notice",
    "NoticeKind",
    "ParameterSet",
    "Unified",
    "changed_files",
    "changes",
    "patterns_of",
    "resolve",
]
