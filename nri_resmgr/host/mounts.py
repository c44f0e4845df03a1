"""Reads the host's mount tables: the device of a path, and where resctrl is mounted."""

from __future__ import annotations

import os
import posixpath
import re
import select
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from nri_resmgr.host.fields import text_or_nothing
from nri_resmgr.host.tree import BadHostFile, Tree, UnreadableHostFile

# Mounts of the host's first process: services and pods have their own mount
# namespaces.
_TABLE: Final = "/proc/1/mountinfo"

# Mount point and device are the fifth and the third field.
_FIELDS: Final = 5
_NUMBER: Final = r"(\d{1,9}):(\d{1,9})"

# Characters that the kernel writes as octal escapes.
_ESCAPED: Final = re.compile(r"[ \t\n\\]")

# Rare in paths from runtimes; normpath is slow.
_NOT_NORMAL: Final = re.compile(r"//|/\.|/$")

# Only root may read that of the host's first process.
_FIRST_MOUNTS: Final = "/proc/1/mounts"

_RESCTRL: Final = "resctrl"
_ROW_FIELDS: Final = 4
_ESCAPE: Final = re.compile(r"\\([0-7]{3})", re.ASCII)


class MountTable:
    """The host's mounts, read again when the kernel reports a change.

    stat(2) on a path waits for its file system: forever on NFS without its server.
    Reading this table never waits.

    Source:
        proc_pid_mountinfo(5), and proc_pid_mounts(5) for poll(2) on it.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._devices: dict[str, str] | None = None
        self._poll: select.poll | None = None
        self._fd = -1

    def device_of(self, path: str) -> tuple[int, int] | None:
        """Return major and minor number of the block device of a path, if it has one.

        Links in *path* are not followed; runtimes have resolved them.

        Raises:
            UnreadableHostFile: The table cannot be read.
            BadHostFile: Its content is invalid.
        """
        return device_below(self.current(), path)

    def close(self) -> None:
        """Close the table; it is opened again when needed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._poll, self._devices = -1, None, None

    def current(self) -> Mapping[str, str]:
        """Return the numbers of all mounted devices, by mount point as in the table.

        Raises:
            UnreadableHostFile: The table cannot be read.
        """
        # Poll first: a change between poll and read is reported by the next poll.
        changed = self._has_changed()
        if self._devices is None or changed:
            self._devices = _parse(self._tree.read(_TABLE) or "")
        return self._devices

    def _has_changed(self) -> bool:
        if self._poll is not None:
            return bool(self._poll.poll(0))
        path = self._tree.root + _TABLE
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise UnreadableHostFile(_TABLE, why) from error
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI | select.POLLERR)
        return True


def device_below(mounts: Mapping[str, str], path: str) -> tuple[int, int] | None:
    """Return the device of a path; see `MountTable.device_of`.

    Args:
        mounts: As `MountTable.current` returned it.
        path: A path of the host.

    Raises:
        BadHostFile: Its number in the table is invalid.
    """
    at = _as_listed(path)
    while at not in mounts and at != "/":
        at = at[: at.rfind("/")] or "/"
    return _numbers(mounts.get(at, "0:0"))


def devices_in(mounts: Mapping[str, str]) -> set[tuple[int, int]]:
    """Return all block devices of a table; invalid numbers are left out."""
    found = set()
    for number in set(mounts.values()):
        with suppress(BadHostFile):  # it is reported where a path is below it
            if device := _numbers(number):
                found.add(device)
    return found


def _numbers(text: str) -> tuple[int, int] | None:
    match = re.fullmatch(_NUMBER, text, re.ASCII)
    if match is None:
        raise BadHostFile(_TABLE, f"not the number of a device: {text!r:.40}")
    major, minor = map(int, match.groups())
    # Major 0 stands for file systems without a device of their own.
    return (major, minor) if major else None


def _as_listed(path: str) -> str:
    if _NOT_NORMAL.search(path):
        path = posixpath.normpath(path)
    return _ESCAPED.sub(lambda sign: f"\\{ord(sign[0]):03o}", path)


def _parse(text: str) -> dict[str, str]:
    devices = {}
    for line in text.splitlines():
        fields = line.split(" ", _FIELDS)
        if len(fields) > _FIELDS:
            # Of several mounts at one mount point the last is visible.
            devices[fields[4]] = fields[2]
    return devices


class ResctrlMount(msgspec.Struct, frozen=True):
    """A mounted resctrl file system.

    Attributes:
        options: Mount options, such as ``cdp``, ``cdpl2``, ``mba_MBps``.
    """

    path: str
    options: tuple[str, ...]

    @property
    def is_in_mbps(self) -> bool:
        """True if memory bandwidth is in MiB/s, enforced by the software controller."""
        return "mba_MBps" in self.options


def find_resctrl_mount(tree: Tree) -> ResctrlMount | None:
    """Return where resctrl is mounted; None where it is not.

    Raises:
        UnreadableHostFile: The table of mounts cannot be read.

    Source:
        proc_pid_mounts(5); Linux resctrl.rst for the options.
    """
    table = text_or_nothing(tree, _FIRST_MOUNTS) or tree.read("/proc/mounts") or ""
    for row in (line.split(" ") for line in table.splitlines()):
        if len(row) >= _ROW_FIELDS and row[2] == _RESCTRL:
            path = _ESCAPE.sub(lambda sign: chr(int(sign[1], 8)), row[1])
            return ResctrlMount(path, tuple(row[3].split(",")))
    return None
