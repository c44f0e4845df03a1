"""Options of the C library's malloc: all that this process sets is here.

`ctypes` is imported late, to keep it off the start path.

Source:
    mallopt(3), malloc_trim(3).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # see the docstring above
    import ctypes

# malloc.h
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

# Bytes: glibc's default, which it raises up to 32 MiB with each larger block that is
# freed. Then the next message of megabytes is in the heap, and what comes after it
# keeps its place from being returned to the kernel. A value that is set stays.
_OWN_MAPPING: Final = 128 << 10

# By default each thread has a heap of its own, which keeps what was freed in it. Only
# one thread at a time runs Python, so they do not wait for each other.
_HEAPS: Final = 1

# Other C libraries than glibc do not have these functions, and a process without memory
# or descriptors cannot import `ctypes`. Both functions are called again later.
_UNAVAILABLE: Final = (
    AttributeError,
    ImportError,
    OSError,
    MemoryError,
    SystemError,
)


def return_large_blocks_at_once() -> None:
    """Have each large block mapped on its own, and all threads share one heap."""
    with contextlib.suppress(*_UNAVAILABLE):
        mallopt = _libc().mallopt
        mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING)
        mallopt(_M_ARENA_MAX, _HEAPS)


def give_back_memory() -> None:
    """Return freed memory to the kernel.

    glibc keeps freed memory for later use. The messages of a large node are megabytes
    in several copies that will not be needed again.
    """
    with contextlib.suppress(*_UNAVAILABLE):
        _libc().malloc_trim(0)


def _libc() -> ctypes.CDLL:
    # Late: see the docstring above. The host's calls are in `nri_resmgr.host.libc`.
    import ctypes

    return ctypes.CDLL(None)
