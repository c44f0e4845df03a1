"""Checks that no other user can write to a directory or a file."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.values import HostError

_OTHERS_WRITE: Final = 0o022


@dataclass(eq=False)
class UntrustedState(HostError):
    """Another user can write to the state, or could have."""

    path: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path} {self.why}; {self.remedy}"


def open_error(path: str, error: OSError) -> Exception:
    """Return an `UntrustedState` for a file of the wrong type, else *error* itself."""
    match error.errno:
        case errno.ELOOP:
            return UntrustedState(path, "is a symbolic link", f"remove {path}")
        case errno.ENOTDIR if Path(path).is_symlink():
            return UntrustedState(
                path, "is a symbolic link", "name the directory that it leads to"
            )
        case errno.ENOTDIR:
            return UntrustedState(path, "is no directory", f"remove {path}")
        case errno.ENXIO | errno.EISDIR:
            return UntrustedState(path, "is no regular file", f"remove {path}")
        case _:
            return error


def check_owner(path: str, found: os.stat_result) -> None:
    """Check that a file or directory is ours and that no other user may write to it.

    Raises:
        UntrustedState: It is not, or another user may.
    """
    if found.st_uid != os.geteuid():
        raise UntrustedState(
            path,
            f"belongs to user {found.st_uid}, not to {os.geteuid()}",
            f"chown {os.geteuid()} {path}, or remove it",
        )
    if stat.S_IMODE(found.st_mode) & _OTHERS_WRITE:
        raise UntrustedState(path, "can be written by others", f"chmod go-w {path}")


def check_file(path: str, found: os.stat_result) -> None:
    """Check that a path is a regular file of ours that no other user may write to.

    Raises:
        UntrustedState: It is not, or another user may.
    """
    if stat.S_ISLNK(found.st_mode):
        raise UntrustedState(path, "is a symbolic link", f"remove {path}")
    if not stat.S_ISREG(found.st_mode):
        raise UntrustedState(path, "is no regular file", f"remove {path}")
    check_owner(path, found)
