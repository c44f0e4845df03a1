"""What is written into a container's cgroup where the runtime cannot do it."""

from __future__ import annotations

import errno
import os
from typing import Final

import msgspec

from nri_resmgr.classes.unified import Files
from nri_resmgr.host.knob_files import WritableTree

# A device that is gone limits nobody; what to do about its coming back is decided
# where devices are looked for.
_GONE: Final = frozenset({errno.ENODEV, errno.ENXIO})


class FailedWrite(msgspec.Struct, frozen=True):
    """A line that the kernel did not take.

    Attributes:
        path: The file, by the host's paths.
        text: The line.
        why: What the kernel answered.
    """

    path: str
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text!r}: {self.why}"


def write_cgroup_files(
    tree: WritableTree, folder: str, files: Files
) -> tuple[FailedWrite, ...]:
    """Write lines into the files of a cgroup, each line by itself.

    It goes away with its container, so nothing has to be journaled or put back.

    Args:
        tree: The host.
        folder: The cgroup, as ``/sys/fs/cgroup/kubepods.slice/...``.
        files: The lines, as `BlockIoClass.files`, `changes` or `Unified.rest` give
            them.

    Returns:
        What failed; the others are written. Lines about a device that is gone do not
        fail.
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
