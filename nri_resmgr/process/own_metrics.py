"""Metrics of this process, under the names of Prometheus' own clients."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series, single

_OWN: Final = Path("/proc/self")


def series_of_process() -> Iterator[Series]:
    """Yield processor time, memory and open files.

    Source:
        proc(5), /proc/pid/statm; Prometheus, "Standard and runtime collectors".
    """
    times = os.times()
    yield single(table.CPU_SECONDS, times.user + times.system)
    pages = int((_OWN / "statm").read_text().split()[1])
    yield single(table.RESIDENT, pages * os.sysconf("SC_PAGE_SIZE"))
    # Minus the file descriptor that listing the folder opens.
    yield single(table.OPEN_FDS, len(os.listdir(_OWN / "fd")) - 1)  # noqa: PTH208 - only counted
    yield single(table.MAX_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
