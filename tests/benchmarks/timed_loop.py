"""A program: the daemon, which notes how long each callback occupies its event loop.

``python timed_loop.py OUTPUT FLAG...`` appends a line to *OUTPUT* for each callback of
at least a millisecond: its beginning and end on the monotonic clock, the seconds of a
CPU that it took, and its name. The collector of garbage is noted as well, in whatever
callback it runs.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from asyncio.events import Handle
from typing import Any, Final

from nri_resmgr.cli.main import main

SHORTEST: Final = 0.001  # seconds

# In memory: a line takes microseconds.
OUTPUT = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

collecting = 0.0, 0.0


def note(begin: float, cpu: float, name: str) -> None:
    """Append a line."""
    end = time.monotonic()
    os.write(OUTPUT, f"{begin:.6f} {end:.6f} {cpu:.6f} {name}\n".encode())


def name_of(callback: Any) -> str:
    """Return the name of a callback; of a task that of its coroutine."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return str(getattr(owner.get_coro(), "__qualname__", "task"))
    return str(getattr(callback, "__qualname__", type(callback).__qualname__))


def run_and_note(handle: Any) -> None:
    """Run a callback in place of `Handle._run`."""
    callback = handle._callback  # noqa: SLF001 - asyncio has no hook for this
    begin, cpu = time.monotonic(), time.thread_time()
    found(handle)
    if time.monotonic() - begin >= SHORTEST:
        note(begin, time.thread_time() - cpu, name_of(callback))


def collected(phase: str, facts: dict[str, int]) -> None:
    """Note a collection of garbage."""
    global collecting  # noqa: PLW0603 - one collection at a time
    if phase == "start":
        collecting = time.monotonic(), time.thread_time()
    elif time.monotonic() - collecting[0] >= SHORTEST:
        begin, cpu = collecting
        note(begin, time.thread_time() - cpu, f"collector-{facts['generation']}")


found = Handle._run  # noqa: SLF001 - as above
Handle._run = run_and_note  # type: ignore[assignment,method-assign] # noqa: SLF001 - as above
gc.callbacks.append(collected)
sys.exit(main(sys.argv[2:]))
