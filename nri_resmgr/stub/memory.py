"""What a large Synchronize leaves behind goes back to the kernel."""

from __future__ import annotations

import contextlib


def give_back_memory() -> None:
    """Return freed memory to the kernel, where the C library can.

    glibc keeps what was freed for later use. The messages of a large node are
    megabytes in several copies that will not be needed again.

    Source:
        malloc_trim(3).
    """
    import ctypes  # late: nothing else needs it

    # Another C library than glibc has no such function.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
