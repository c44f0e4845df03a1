"""Which device holds a path of the host, without asking the path's file system."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import select
from typing import Final

from nri_resmgr.host.tree import BadHostFile, Tree, UnreadableHostFile

# The mounts of the host's first process. Our own may be others: services and pods
# have mount namespaces of their own.
_TABLE: Final = "/proc/1/mountinfo"

# Mount point and device are the fifth and the third field.
_FIELDS: Final = 5
_NUMBER: Final = r"(\d{1,9}):(\d{1,9})"

# How the kernel writes what would break the table apart.
_ESCAPED: Final = re.compile(r"[ \t\n\\]")

# What a path from a runtime hardly ever has.
_NOT_NORMAL: Final = re.compile(r"//|/\.|/$")


class MountTable:
    """The host's mounts, read again when the kernel says that they changed.

    stat(2) on a path waits for its file system, for ever where that is an NFS whose
    server is gone. This table is the kernel's own and never waits.

    Source:
        proc_pid_mountinfo(5), and proc_pid_mounts(5) for poll(2) on it.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._devices: dict[str, str] | None = None
        self._poll: select.poll | None = None
        self._fd = -1

    def device_of(self, path: str) -> tuple[int, int] | None:
        """Return major and minor of the block device that holds a path, if one does.

        Links in *path* are not followed; runtimes have done that before they ask.

        Raises:
            UnreadableHostFile: The table cannot be read.
            BadHostFile: It makes no sense.
        """
        devices = self._current()
        at = _as_listed(path)
        while at not in devices and at != "/":
            at = at[: at.rfind("/")] or "/"
        number = devices.get(at, "0:0")
        match = re.fullmatch(_NUMBER, number, re.ASCII)
        if match is None:
            raise BadHostFile(_TABLE, f"not the number of a device: {number!r:.40}")
        major, minor = map(int, match.groups())
        # Major 0 stands for file systems without a device of their own.
        return (major, minor) if major else None

    def close(self) -> None:
        """Let go of the table; it is opened again where needed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._poll, self._devices = -1, None, None

    def _current(self) -> dict[str, str]:
        # First the question, then the table: what comes between shows next time.
        changed = self._has_changed()
        if self._devices is None or changed:
            self._devices = _parse(self._tree.read(_TABLE) or "")
        return self._devices

    def _has_changed(self) -> bool:
        if self._poll is None:
            with contextlib.suppress(FileNotFoundError):
                self._open()
            return True
        return bool(self._poll.poll(0))

    def _open(self) -> None:
        path = self._tree.root + _TABLE
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise UnreadableHostFile(_TABLE, why) from error
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI | select.POLLERR)


def _as_listed(path: str) -> str:
    if _NOT_NORMAL.search(path):
        path = posixpath.normpath(path)
    return _ESCAPED.sub(lambda sign: f"\\{ord(sign[0]):03o}", path)


def _parse(text: str) -> dict[str, str]:
    devices = {}
    for line in text.splitlines():
        fields = line.split(" ", _FIELDS)
        if len(fields) > _FIELDS:
            # Of several mounts at one point the last is on top.
            devices[fields[4]] = fields[2]
    return devices
