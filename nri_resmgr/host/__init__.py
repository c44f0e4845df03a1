"""Every open of sysfs and procfs, and the machine's model out of them."""

from __future__ import annotations

from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.hotplug import HotplugWatch
from nri_resmgr.host.tree import (
    BadHostFile,
    HostTree,
    MissingHostFile,
    Tree,
    UnreadableHostFile,
)

# What the start path does not need stays in its module: dumps, written trees.
__all__ = [
    "BadHostFile",
    "HostTree",
    "HotplugWatch",
    "MissingHostFile",
    "Tree",
    "UnreadableHostFile",
    "read_machine",
]
