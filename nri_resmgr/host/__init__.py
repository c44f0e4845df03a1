"""Every open of sysfs and procfs, and the machine's model out of them."""

from __future__ import annotations

from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.hotplug import HotplugWatch
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import (
    BadHostFile,
    HostTree,
    MissingHostFile,
    Tree,
    UnreadableHostFile,
)

# Dumps stay out: they bring cattrs, which the start path does not need.
__all__ = [
    "BadHostFile",
    "HostTree",
    "HotplugWatch",
    "MissingHostFile",
    "RecordedTree",
    "Tree",
    "UnreadableHostFile",
    "read_machine",
    "sysfs_files",
    "write_tree",
]
