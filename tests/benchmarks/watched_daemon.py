"""A program: the daemon, which notes what it does beside the requests.

``python watched_daemon.py OUTPUT FLAG...`` appends a line to *OUTPUT* for each piece of
work: its beginning and end on the monotonic clock, and its name.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from nri_resmgr.app.verification.inspection import Inspection
from nri_resmgr.app.verification.verifier import Verification
from nri_resmgr.checkpoint.writer import CheckpointWriter
from nri_resmgr.cli.main import main
from nri_resmgr.log.output import Output

# In memory: a line takes microseconds.
OUTPUT = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

collecting = 0.0


def note(begin: float, name: str) -> None:
    os.write(OUTPUT, f"{begin:.6f} {time.monotonic():.6f} {name}\n".encode())


def watch(owner: Any, method: str, name: str) -> None:
    found: Callable[..., Any] = getattr(owner, method)

    @functools.wraps(found)
    def noted(*arguments: Any, **more: Any) -> Any:
        begin = time.monotonic()
        try:
            return found(*arguments, **more)
        finally:
            note(begin, name)

    setattr(owner, method, noted)


def collected(phase: str, facts: dict[str, int]) -> None:
    global collecting  # noqa: PLW0603 - one collection at a time
    if phase == "start":
        collecting = time.monotonic()
    else:
        note(collecting, f"collector-{facts['generation']}")


watch(CheckpointWriter, "_make_lines", "checkpoint-lines")
watch(CheckpointWriter, "_write_out", "checkpoint-thread")
watch(Inspection, "inspect", "verification")
watch(Verification, "_conclude", "verification")
watch(Output, "_write", "log")
gc.callbacks.append(collected)
sys.exit(main(sys.argv[2:]))
