"""Metrics of the daemon's process, under the names of Prometheus' own clients."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import google.protobuf

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series, single
from nri_resmgr.stub.runtime_info import RuntimeInfo

_OWN: Final = Path("/proc/self")


def series_of_process(version: str, runtime: RuntimeInfo) -> Iterator[Series]:
    """Yield versions, processor time, memory and open files.

    Args:
        version: Ours.
        runtime: That of the present session.

    Source:
        proc(5), /proc/pid/statm; Prometheus, "Standard and runtime collectors".
    """
    versions = (version, platform.python_version(), google.protobuf.__version__)
    yield Series(table.BUILD, {versions: 1})
    if runtime.name:
        labels = (runtime.name, runtime.version, str(runtime.level or ""))
        yield Series(table.RUNTIME, {labels: 1})
    times = os.times()
    yield single(table.CPU_SECONDS, times.user + times.system)
    pages = int((_OWN / "statm").read_text().split()[1])
    yield single(table.RESIDENT, pages * os.sysconf("SC_PAGE_SIZE"))
    # Minus the file descriptor that listing the folder opens.
    yield single(table.OPEN_FDS, len(os.listdir(_OWN / "fd")) - 1)  # noqa: PTH208 - only counted
    yield single(table.MAX_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
