"""CPUs that do not sleep between two requests."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_LATENCY = "/dev/cpu_dma_latency"
_NO_SLEEP = struct.pack("i", 0)  # microseconds that a wake-up may take


@contextmanager
def awake_cpus() -> Iterator[bool]:
    """Keep idle CPUs out of sleep, as latency tests do; yield whether that worked.

    A request wakes two CPUs, ours and the caller's. How long a sleeping one takes is
    the machine's, and on a virtual one the host's: tens of microseconds or hundreds.

    Source:
        Linux, Documentation/power/pm_qos_interface.rst, "From user space mode".
    """
    try:
        held = os.open(_LATENCY, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:  # no such device, or not ours to ask
        yield False
        return
    try:
        os.write(held, _NO_SLEEP)
        yield True  # the kernel forgets the wish with the file
    finally:
        os.close(held)
