"""Whether a directory and its files are ours alone, and what to do if not."""

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
    """Others can change the state, or could have."""

    path: str
    why: str
    mend: str

    def __str__(self) -> str:
        return f"{self.path} {self.why}; {self.mend}"


def mistrusted(path: str, error: OSError) -> Exception:
    """Say what is wrong with what cannot be opened, if it is what it is."""
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


def judge(path: str, found: os.stat_result) -> None:
    """See that a file or directory belongs to us, and that nobody else may write.

    Raises:
        UntrustedState: Not so.
    """
    if found.st_uid != os.geteuid():
        raise UntrustedState(
            path,
            f"belongs to user {found.st_uid}, not to {os.geteuid()}",
            f"chown {os.geteuid()} {path}, or remove it",
        )
    if stat.S_IMODE(found.st_mode) & _OTHERS_WRITE:
        raise UntrustedState(path, "can be written by others", f"chmod go-w {path}")


def judge_file(path: str, found: os.stat_result) -> None:
    """See that what should be a file of ours is one, and that nobody else may write.

    Raises:
        UntrustedState: Not so.
    """
    if stat.S_ISLNK(found.st_mode):
        raise UntrustedState(path, "is a symbolic link", f"remove {path}")
    if not stat.S_ISREG(found.st_mode):
        raise UntrustedState(path, "is no regular file", f"remove {path}")
    judge(path, found)
