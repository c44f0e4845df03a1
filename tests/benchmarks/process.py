"""What a process uses: CPU and memory."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Read what all threads of a process have used, those that ended included.

    Source:
        clock_getcpuclockid(3); glibc, sysdeps/unix/sysv/linux, MAKE_PROCESS_CPUCLOCK.
    """
    return time.clock_gettime(~pid << 3 | 2)


def cpu_seconds_of_run(command: Sequence[str | Path]) -> float:
    """Run a program to its end, with an empty environment; return what it has used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env={}, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def resident(pid: int) -> float:
    """Return the resident memory of a process, MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmRSS")
