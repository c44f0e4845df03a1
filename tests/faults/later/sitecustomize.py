"""Lets the monotonic clock of a Python process jump, to what another one says.

A clock belongs to the whole machine, and the kernel sets that of a namespace before its
first process. So Python's is replaced, before the program imports anything; see
`tests.faults.later_clock`.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

if _path := os.environ.get("LATER_CLOCK"):
    with Path(_path).open("r+b") as _file:
        _seconds = memoryview(mmap.mmap(_file.fileno(), 8)).cast("d")
    _true = time.monotonic
    time.monotonic = lambda: _true() + _seconds[0]
