"""Reads what others wrote as a whole, up to a bound in bytes.

A file of the wrong kind or of a faulty writer must not take the memory of the daemon,
which a memory limit ends. Each bound is above everything valid, with its reason.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

_CHUNK: Final = 1 << 16
_MIB: Final = 1 << 20


class Bound(msgspec.Struct, frozen=True):
    """The size that a kind of file may have.

    Attributes:
        most: In bytes.
        kind: With its article.
        advice: What to do about a larger one.
    """

    most: int
    kind: str
    advice: str


# A document may have 2 Mi characters (`nri_resmgr.config.syntax`), of up to 4 bytes.
DOCUMENT: Final = Bound(8 * _MIB, "a document", "check that it is the intended file")

# The largest is /proc/interrupts: 11 bytes for each interrupt and CPU, which is 32 MiB
# for 3,000 interrupts on 1,024 CPUs.
KERNEL_FILE: Final = Bound(
    32 * _MIB, "a kernel file", "check the host's mounts and --host-root"
)

# Some hundred bytes for each of the kubelet's containers, of which it has thousands at
# most.
KUBELET_FILE: Final = Bound(
    4 * _MIB, "a kubelet file", "check that the kubelet made it"
)

# `nri_resmgr.spool.LARGEST`, which an agent observes.
SPOOL_FILE: Final = Bound(4 * _MIB, "a spool file", "check the objects in the cluster")

# A container takes about 2 KiB of a checkpoint, and at most 20 with all labels and
# annotations that affinities may refer to. 3,000 of the latter are more than the
# memory of the daemon as it is deployed can hold.
STATE_FILE: Final = Bound(
    64 * _MIB, "a state file", "remove it, and placements are recovered from cgroups"
)

# --record-limit is 256 MiB by default; a replay holds all messages.
RECORDING: Final = Bound(1024 * _MIB, "a recording", "record with --record-limit")

# Unpacked; the largest machines have some MiB of files.
DUMP: Final = Bound(256 * _MIB, "a dump", "make it with `nri-resmgr topology dump`")

# 5,000 containers take 8 MiB of an answer.
ANSWER: Final = Bound(
    64 * _MIB, "an answer", "check that nri-resmgr listens on --control-socket"
)

# A line for each interrupt, and the bans.
IRQBALANCE_REPLY: Final = Bound(4 * _MIB, "a reply of irqbalance", "restart irqbalance")


def check_size(size: int, bound: Bound) -> None:
    """Check a size that is known before reading.

    Raises:
        OSError: EFBIG, with a sentence.
    """
    if size > bound.most:
        raise _too_large(bound, f"it has {size / _MIB:.1f} MiB")


def read_whole(read: Callable[[int], bytes], bound: Bound, size: int = 0) -> bytes:
    """Read to the end; read hardly more than the bound.

    Args:
        read: Returns at most so many next bytes; none at the end.
        bound: The bound.
        size: The size, where it is known before reading.

    Raises:
        OSError: EFBIG with a sentence for what is larger, or what *read* raises.
    """
    check_size(size, bound)
    pieces = []
    left = bound.most
    while piece := read(_CHUNK):
        left -= len(piece)
        if left < 0:
            raise _too_large(bound, "it is larger")
        pieces.append(piece)
    return b"".join(pieces)


def read_descriptor(fd: int, bound: Bound) -> bytes:
    """Read an open file of any kind; raises what `read_whole` does."""
    found = os.fstat(fd)
    size = found.st_size if stat.S_ISREG(found.st_mode) else 0
    return read_whole(partial(os.read, fd), bound, size)


def read_file(path: Path, bound: Bound) -> bytes:
    """Read a file; raises what `read_whole` does."""
    with path.open("rb", buffering=0) as file:
        return read_descriptor(file.fileno(), bound)


def has_text(path: Path, text: str) -> bool:
    """Return whether a file has just this text, without reading more of it.

    Raises:
        OSError: It cannot be read.
    """
    content = text.encode()
    with path.open("rb") as file:
        return file.read(len(content) + 1) == content


def read_line(stream: BinaryIO, bound: Bound) -> bytes:
    """Read a line with its end; raises what `read_whole` does."""
    line = stream.readline(bound.most + 1)
    if len(line) > bound.most:
        raise _too_large(bound, "it is larger")
    return line


def read_lines(path: Path, bound: Bound) -> Iterator[str]:
    """Read a file of lines one by one; bytes that are not UTF-8 are replaced.

    Raises:
        OSError: Before the line that exceeds the bound, or what the system raises.
    """
    with path.open("rb") as file:
        left = bound.most
        check_size(os.fstat(file.fileno()).st_size, bound)
        while line := file.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise _too_large(bound, "it is larger")
            yield line.decode(errors="replace")


class BoundedStream(io.BufferedIOBase):
    """A stream whose reading ends with an error where it has more than a bound.

    Args:
        stream: The stream; its size is not known.
        bound: The bound.
    """

    def __init__(self, stream: io.BufferedIOBase, bound: Bound) -> None:
        self._stream = stream
        self._bound = bound
        self._left = bound.most

    def readable(self) -> bool:
        """See `io.IOBase.readable`."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Read; raises what `read_whole` does."""
        most = self._left + 1
        piece = self._stream.read(most if size is None or size < 0 else min(size, most))
        self._left -= len(piece)
        if self._left < 0:
            raise _too_large(self._bound, "it is larger")
        return piece


def reason(error: OSError) -> str:
    """Return why something cannot be read, to follow a colon."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def _too_large(bound: Bound, what: str) -> OSError:
    most = f"{bound.kind} may have {bound.most // _MIB} MiB"
    return OSError(errno.EFBIG, f"{what}, and {most}: {bound.advice}")
