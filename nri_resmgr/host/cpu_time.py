"""Reads how busy each CPU is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from nri_resmgr.host.tree import HostFileError, Tree

_FILE: Final = "/proc/stat"
_CPU: Final = re.compile(r"^cpu(\d{1,6}) (.*)$", re.ASCII | re.MULTILINE)
_TICKS: Final = re.compile(r"\d{1,20}", re.ASCII)  # 64 bits
# user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
_COLUMNS: Final = 8
_IDLE: Final = (3, 4)

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")

Ticks = Mapping[int, tuple[int, int]]
"""Busy and all clock ticks since boot, by online CPU."""


class BadCpuTimes(HostFileError):
    """The kernel's times of CPUs are not in the known form."""


def read_ticks(tree: Tree) -> Ticks:
    """Read the ticks of all online CPUs.

    Raises:
        BadCpuTimes: The file is missing, or has another form.
        UnreadableHostFile: It cannot be read.

    Source:
        proc(5), ``/proc/stat``.
    """
    found = {}
    for number, rest in _CPU.findall(tree.read(_FILE) or ""):
        words = rest.split()[:_COLUMNS]
        if len(words) <= max(_IDLE) or not all(map(_TICKS.fullmatch, words)):
            raise BadCpuTimes(_FILE, f"cpu{number}: expected ticks, not {rest!r:.60}")
        ticks = [int(word) for word in words]
        every = sum(ticks)
        found[int(number)] = every - sum(ticks[one] for one in _IDLE), every
    if not found:
        raise BadCpuTimes(_FILE, "no CPU is listed")
    return found


def busy_between(before: Ticks, after: Ticks) -> dict[int, int]:
    """Return the thousandths of the time in which each CPU was busy.

    CPUs that were online only once are left out.
    """
    found = {}
    for cpu, (busy, every) in after.items():
        if cpu in before:
            # Ticks of idle and iowait can decrease: proc(5).
            passed = max(every - before[cpu][1], 1)
            found[cpu] = min(max((busy - before[cpu][0]) * 1000 // passed, 0), 1000)
    return found
