"""Writes values to a container's cgroup that the runtime cannot set."""

from __future__ import annotations

import errno
import os
from typing import Final

import msgspec

from nri_resmgr.classes.unified import Files
from nri_resmgr.host.knobs.files import WritableTree

# Limits of a removed device have no effect; when it returns, finding devices again
# writes them.
_GONE: Final = frozenset({errno.ENODEV, errno.ENXIO})


class FailedWrite(msgspec.Struct, frozen=True):
    """A line that the kernel rejected."""

    path: str
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text!r}: {self.why}"


def write_cgroup_files(
    tree: WritableTree, folder: str, files: Files
) -> tuple[FailedWrite, ...]:
    """Write lines to the files of a cgroup, one write per line.

    Nothing is journaled: the cgroup is removed with its container.

    Returns:
        Failed lines; the others are written. Lines of removed devices do not fail.
    """
    failed = []
    for file, lines in files.items():
        path = f"{folder}/{file}"
        for line in lines:
            try:
                tree.write(path, line)
            except OSError as error:
                if error.errno not in _GONE:
                    why = os.strerror(error.errno or 0)
                    failed.append(FailedWrite(path, line, why))
    return tuple(failed)
