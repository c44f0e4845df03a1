"""Cases of the law of faults: which calls fail, in which phase, how and how often."""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Iterator
from typing import Final
from zlib import crc32

import attrs

from tests.faults.system_calls import ALWAYS, HANG, Fault, Point

# How each call can fail, the likeliest first.
ERRORS: Final[dict[str, tuple[int, ...]]] = {
    "openat": (errno.EMFILE, errno.EIO, errno.ENOMEM, HANG),
    "read": (errno.EIO, HANG, errno.ENOMEM),
    "write": (errno.EIO, errno.ENOSPC, HANG),
    "newfstatat": (errno.EIO, HANG),
    "getdents64": (errno.EIO, HANG),
    "mkdirat": (errno.ENOSPC, errno.EIO),
    "renameat": (errno.EIO, errno.ENOSPC, HANG),
    "unlinkat": (errno.EIO, HANG),
    "utimensat": (errno.EIO,),
    "readlinkat": (errno.EIO,),
    "flock": (errno.ENOLCK, errno.EIO),
    "ftruncate": (errno.EIO,),
    "fchmod": (errno.EIO,),
    "chmod": (errno.EIO,),
    "fsync": (errno.EIO, HANG),
    "fdatasync": (errno.EIO, HANG),
    "clone": (errno.EAGAIN, errno.ENOMEM),
    "mmap": (errno.ENOMEM,),
    "socket": (errno.EMFILE, errno.ENOBUFS),
    "socketpair": (errno.EMFILE,),
    "epoll_create1": (errno.EMFILE,),
    "epoll_ctl": (errno.ENOMEM, errno.ENOSPC),
    "eventfd2": (errno.EMFILE,),
    "pipe2": (errno.EMFILE,),
    "inotify_init1": (errno.EMFILE, errno.ENOMEM),
    "inotify_add_watch": (errno.ENOSPC, errno.ENOMEM),
    "bind": (errno.EADDRINUSE, errno.ENOMEM),
    "listen": (errno.EADDRINUSE,),
    "connect": (errno.ECONNREFUSED, errno.EAGAIN),
    "accept4": (errno.EMFILE, errno.ECONNABORTED),
    "recvfrom": (errno.ECONNRESET, errno.ENOMEM),
    "recvmsg": (errno.ECONNRESET,),
    "sendto": (errno.EPIPE, errno.ENOBUFS),
    "sendmsg": (errno.EPIPE,),
    "fstat": (errno.EIO,),
    "pread64": (errno.EIO, HANG),
    "pwrite64": (errno.EIO,),
    "writev": (errno.EIO,),
}

_FEW: Final = 3  # failures of a fault that is neither single nor lasting


@attrs.frozen
class Case:
    """Faults of one phase.

    Attributes:
        phase: What happens meanwhile: a key of `PHASES`, `START` or `END`.
        faults: As text, so that a case can be repeated; see `Fault.from_text`.
    """

    phase: str
    faults: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.phase}:{'+'.join(self.faults)}"

    @classmethod
    def from_text(cls, text: str) -> Case:
        """Read what `str` returns."""
        phase, _, faults = text.partition(":")
        return cls(phase, tuple(faults.split("+")))


def chosen(phase: str, counts: Counter[Point]) -> Iterator[Case]:
    """Choose one case for each point: any of its calls, its likeliest error."""
    for point, count in sorted(counts.items()):
        draw = random.Random(f"{phase} {point}")  # noqa: S311 - the same each time
        after = draw.randrange(count)
        fault = Fault(point, ERRORS[point.call][0], after)
        yield Case(phase, (str(fault),))


def night(phase: str, counts: Counter[Point], seed: int, nights: int) -> Iterator[Case]:
    """List the cases of a night: of each point, some of its errors and their times.

    As many nights with seeds in a row have all: each error for the first call, for one
    in the middle, which is another one with each seed, for the last one, for a few
    calls and for all.
    """
    for point, count in sorted(counts.items()):
        draw = random.Random(f"{phase} {point} {seed}")  # noqa: S311 - as above
        afters = [0, *([draw.randrange(1, count - 1)] if count > 2 else ())]
        afters += [count - 1] if count > 1 else []
        faults = []
        for error in ERRORS[point.call]:
            faults += [Fault(point, error, after) for after in afters]
            if error != HANG:
                faults += [Fault(point, error, 0, times) for times in (_FEW, ALWAYS)]
        # Not all points begin with the same one, so that nights take as long.
        first = crc32(f"{phase} {point}".encode()) + seed
        for fault in faults[first % nights :: nights]:
            yield Case(phase, (str(fault),))


def pairs(phase: str, counts: Counter[Point], number: int, seed: int) -> Iterator[Case]:
    """Draw pairs of faults of one phase."""
    draw = random.Random(f"{phase} {seed}")  # noqa: S311 - the same each time
    points = sorted(counts)
    for _ in range(number if points else 0):
        faults = []
        for _ in range(2):
            point = draw.choice(points)
            error = draw.choice(ERRORS[point.call])
            times = draw.choice((1, _FEW, ALWAYS)) if error != HANG else 1
            after = draw.randrange(counts[point]) if times == 1 else 0
            faults.append(str(Fault(point, error, after, times)))
        yield Case(phase, tuple(faults))
