"""The speed of the emulated machine's clock, which is the time-stamp counter's here.

QEMU hands on the host's counter, and the guest's kernel measures its speed as it
starts, within some hundredths of a second. Beside busy processes QEMU stands still in
between: the kernel has found a quarter of the speed, and its seconds took a quarter of
one. So the kernel gets what is measured here over a longer time.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import time
from collections.abc import Callable
from typing import Final

# rdtsc; shl rdx, 32; or rax, rdx; ret
_READ_COUNTER: Final = bytes.fromhex("0f31 48c1e220 4809d0 c3")
_SECONDS: Final = 0.5
# Of so many readings, the one counts between whose two looks at the clock least passed:
# the process was not interrupted there.
_READINGS: Final = 1000


def kernel_arguments() -> tuple[str, ...]:
    """Return the guest kernel's argument for the speed of its counter.

    None on hosts without this counter, where the kernel has to measure QEMU's.
    """
    if platform.machine() != "x86_64":
        return ()
    return (f"tsc_early_khz={counter_khz()}",)


def counter_khz() -> int:
    """Measure how many thousand times a second the time-stamp counter counts.

    Source:
        Intel 64 and IA-32 Architectures Software Developer's Manual, RDTSC.
    """
    with mmap.mmap(
        -1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    ) as page:
        page.write(_READ_COUNTER)
        place = ctypes.c_char.from_buffer(page)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))
        began, at_first = _reading(read)
        time.sleep(_SECONDS)
        ended, at_last = _reading(read)
        del read, place  # the page cannot be closed while something points into it
    return round((at_last - at_first) * 1_000_000 / (ended - began))


def _reading(read: Callable[[], int]) -> tuple[int, int]:
    """Return a time in nanoseconds and the counter then."""
    clock = time.monotonic_ns
    readings = [(clock(), read(), clock()) for _ in range(_READINGS)]
    before, counter, after = min(readings, key=lambda one: one[2] - one[0])
    return (before + after) // 2, counter
