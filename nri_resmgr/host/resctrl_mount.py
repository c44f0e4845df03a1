"""Where the resctrl file system is mounted, and how."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from nri_resmgr.host.tree import Tree, UnreadableHostFile

# The mounts of the host's first process: a service or a pod has its own. Only root
# may read them.
_TABLES: Final = ("/proc/1/mounts", "/proc/mounts")

_TYPE: Final = "resctrl"
_FIELDS: Final = 4
_ESCAPE: Final = re.compile(r"\\([0-7]{3})", re.ASCII)


class Mount(msgspec.Struct, frozen=True):
    """One row of the table of mounts.

    Attributes:
        path: The mount point on the host, mostly ``/sys/fs/resctrl``.
        options: Such as ``cdp``, ``cdpl2``, ``mba_MBps``, and those of every mount.
    """

    path: str
    options: tuple[str, ...]

    @property
    def is_in_mbps(self) -> bool:
        """Whether memory bandwidth is in MiB/s, kept by the software controller."""
        return "mba_MBps" in self.options


def find_mount(tree: Tree) -> Mount | None:
    """Return where resctrl is mounted; None where it is not.

    Raises:
        UnreadableHostFile: The table of mounts cannot be read.

    Source:
        proc_pid_mounts(5); Linux resctrl.rst for the options.
    """
    rows = [row.split(" ") for row in _table(tree).splitlines()]
    for row in rows:
        if len(row) >= _FIELDS and row[2] == _TYPE:
            path = _ESCAPE.sub(lambda sign: chr(int(sign[1], 8)), row[1])
            return Mount(path, tuple(row[3].split(",")))
    return None


def _table(tree: Tree) -> str:
    first, second = _TABLES
    try:
        text = tree.read(first)
    except UnreadableHostFile:
        text = None
    return tree.read(second) or "" if text is None else text
