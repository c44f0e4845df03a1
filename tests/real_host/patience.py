"""Waiting with a limit that slow machines (an emulated guest) can stretch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

# Seconds between two looks. Stretched too: polling would take all of
# an emulated CPU.
_STEP = 0.01


class TooSlow(Exception):
    """The expected event did not happen in time."""


def patience(seconds: float) -> float:
    """*seconds* on a usual machine, times ``NRI_RESMGR_TEST_SLOWDOWN``."""
    return seconds * float(os.environ.get("NRI_RESMGR_TEST_SLOWDOWN", "1"))


def is_slow_machine() -> bool:
    """Whether waits are stretched here."""
    return patience(1) > 1


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Return as soon as *holds* does.

    The limit is generous: while a disk is written to, a runtime
    takes seconds for what otherwise takes an instant.

    Raises:
        TooSlow: It did not within *seconds*, stretched; names *what*.
    """
    limit = time.monotonic() + patience(seconds)
    while not holds():
        if time.monotonic() > limit:
            raise TooSlow(f"{what}: not within {patience(seconds):g} s")
        time.sleep(patience(_STEP))
