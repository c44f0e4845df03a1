"""Notices files that are renamed into a folder, without looking again and again."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from nri_resmgr.host.libc import call

# From <sys/inotify.h>.
_MOVED_TO: Final = 0x80
_ONLY_FOLDERS: Final = 0x0100_0000
_NO_LINK: Final = 0x0200_0000

_READ: Final = 64 * 1024  # bytes of events
# The kernel keeps 16,384 events by default, of 32 bytes for names like ours; what is
# left is read the next time.
_MOST_READS: Final = 16


class FolderWatch:
    """Watches a folder; its descriptor is readable once a file was renamed into it.

    A hint only: another change is not noticed, nor is one where the kernel has no
    watch left, so that a caller has to look from time to time as well.

    Args:
        path: Of the folder.

    Source:
        inotify(7).
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._watch = -1

    def fileno(self) -> int:
        """Return the descriptor to wait for; -1 while nothing is watched."""
        return self._fd if self._watch >= 0 else -1

    def renew(self) -> None:
        """Watch the folder that has the path now; it may be another one than before."""
        before, self._watch = self._watch, -1
        with suppress(OSError):  # there is none, or none that may be watched
            if self._fd < 0:
                self._fd = call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
            mask = _MOVED_TO | _ONLY_FOLDERS | _NO_LINK
            path = os.fsencode(self._path)
            self._watch = call("inotify_add_watch", self._fd, path, mask)
        if before not in (-1, self._watch):
            with suppress(OSError):  # the kernel has removed it already
                call("inotify_rm_watch", self._fd, before)

    def drain(self) -> None:
        """Forget what was noticed."""
        with suppress(OSError):  # nothing is left
            for _ in range(_MOST_READS):
                os.read(self._fd, _READ)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._watch = -1
