"""Detects hotplug of CPUs and memory, and reads the new model of the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from nri_resmgr.host.machine.discovery import NO_MEMORY_KINDS, read_machine
from nri_resmgr.host.paths import CPU_ROOT, NODE_ROOT
from nri_resmgr.host.tree import Tree, UnreadableHostFile, naming_root
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.values import HostError

# Files that change whenever a CPU or a node's memory comes or goes.
_SETS: Final = (
    f"{CPU_ROOT}/online",
    f"{CPU_ROOT}/present",
    f"{NODE_ROOT}/online",
    f"{NODE_ROOT}/has_memory",
    f"{NODE_ROOT}/has_normal_memory",
)

# Pages of each zone change even if a node keeps other blocks of memory. Unlike
# MemTotal they do not change with a virtual machine's memory balloon.
_ZONES: Final = "/proc/zoneinfo"
_ZONE: Final = r"Node \d+, zone.*"
_PRESENT: Final = r" present +\d+"

# What else changes is looked at once in so many frequent polls.
_ALL_AT: Final = 20

# A folder per block of memory, for processes that may not read the zones.
_BLOCKS: Final = "/sys/devices/system/memory"

Fingerprint: TypeAlias = tuple[tuple[str | None, ...], tuple[str, ...]]
"""Contents of a few small files; if they are equal, the model is up to date."""

log = Logger(__name__)


def read_fingerprint(tree: Tree) -> Fingerprint:
    """Read the files that change with every hotplug: six, or five and a folder.

    Raises:
        UnreadableHostFile: A file is there and cannot be read.

    Source:
        Linux, ``mm/vmstat.c`` for ``/proc/zoneinfo``, and ``struct zone`` in
        ``include/linux/mmzone.h`` for "present" and "managed".
    """
    with naming_root(tree):
        texts = tuple(tree.read(path) for path in _SETS)
        zones = tree.read(_ZONES)
        if zones is None:
            return texts, tree.names(_BLOCKS)
    return texts, (*re.findall(_ZONE, zones), *re.findall(_PRESENT, zones))


class StillChanging(HostError):
    """CPUs or memory came or went while the machine was read."""

    def __str__(self) -> str:
        return "CPUs or memory came or went while the machine was read"


class HotplugWatch:
    """Reads the model again after CPUs or memory came or went.

    It has no thread or timer of its own: poll from a timer, or at a uevent of the cpu
    or memory subsystem. A poll without changes takes 0.2 ms with few CPUs and 0.6 ms
    with 256, plus the kernel's time for its zones; a poll with changes reads the whole
    machine. From an event loop, poll in a thread (``asyncio.to_thread``).

    Attributes:
        unsettled: Why the last poll returned no model although something changed, else
            None. The next poll retries.
    """

    def __init__(
        self, tree: Tree, memory_kinds: Mapping[int, MemoryKind] = NO_MEMORY_KINDS
    ) -> None:
        """Read the present state; read the machine after this.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        self._tree = tree
        self._memory_kinds = memory_kinds
        self._known = read_fingerprint(tree)
        self.unsettled: HostError | None = None
        self._calls = 0

    def poll_often(self) -> Machine | None:
        """Poll if online CPUs have changed, and at every twentieth call.

        No container should be left on a CPU that is gone; the rest is not urgent.
        """
        self._calls += 1
        (online, *_), _ = self._known
        is_due = self.unsettled is not None or self._calls % _ALL_AT == 0
        try:
            is_due = is_due or self._tree.read(_SETS[0]) != online
        except UnreadableHostFile:
            is_due = True  # which reports it
        return self.poll() if is_due else None

    def poll(self) -> Machine | None:
        """Return the present machine, if it has changed since the last model.

        During a change the kernel's files may contradict each other. Then the old model
        stays in force, and `unsettled` has the reason.
        """
        before, self.unsettled = self.unsettled, None
        try:
            return self._changed()
        except HostError as error:
            self.unsettled = error
            if str(error) != str(before):  # once, not with every poll
                log.warning("topology.unsettled", error=str(error))
            return None

    def _changed(self) -> Machine | None:
        found = read_fingerprint(self._tree)
        if found == self._known:
            return None
        machine = read_machine(self._tree, self._memory_kinds)
        if read_fingerprint(self._tree) != found:
            raise StillChanging
        self._known = found
        return machine
