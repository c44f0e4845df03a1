"""Failed writes to cgroups of containers, with what to do about them."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Final

from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.values import HostError

CPUS: Final = "cpuset.cpus"
MEMS: Final = "cpuset.mems"
SHARES: Final = "cpu.shares"
WEIGHT: Final = "cpu.weight"

# The latter for ids that the kernel cannot have at all.
_BAD_VALUE: Final = frozenset({errno.EINVAL, errno.ERANGE})

_NO_ACCESS: Final = "run as root with write access to the host's cgroups"
_REMEDIES: Final = {
    errno.EROFS: f"mount the host's {CGROUP_ROOT} writable",
    errno.EPERM: _NO_ACCESS,
    errno.EACCES: _NO_ACCESS,
    errno.ENOENT: "the container's cgroup does not have this controller",
    errno.EBUSY: "a cgroup that the container made below has others",
}
_INVALID: Final = {
    CPUS: "some are offline, or exclusive to another cgroup",
    MEMS: "some have no memory, or are exclusive to another cgroup",
    SHARES: "cpu.idle is set",
    WEIGHT: "cpu.idle is set",
}


@dataclass(eq=False)
class FailedCgroupWrite(HostError):
    """The kernel rejected a value of a container's cgroup."""

    path: str
    text: str
    number: int
    remedy: str
    unrestored: tuple[FailedCgroupWrite, ...] = ()

    def __str__(self) -> str:
        why = f"cannot write {self.text!r} to {self.path}: "
        rest = "".join(f"; restoring failed as well: {e}" for e in self.unrestored)
        return why + described(self.number, self.remedy) + rest


def missing_file(paths: tuple[str, ...], text: str) -> FailedCgroupWrite:
    """Return the error for a file that the cgroup does not have."""
    number = errno.ENOENT
    return FailedCgroupWrite(paths[-1], text, number, remedy_for(paths[-1], number))


def remedy_for(path: str, number: int) -> str:
    """Return what to do about an error of a file; empty if that is not known."""
    if number in _BAD_VALUE:
        return _INVALID.get(path.rpartition("/")[2], "")
    return _REMEDIES.get(number, "")


def described(number: int, remedy: str) -> str:
    """Return an error in the kernel's words, and what to do about it."""
    why = os.strerror(number)
    return f"{why[:1].lower()}{why[1:]}{remedy and f' ({remedy})'}"
