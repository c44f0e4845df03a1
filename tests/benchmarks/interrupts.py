"""An end by a signal that leaves no processes, mounts and cgroups behind."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL: Final = 128  # a shell's exit status of a process that a signal ended


@contextmanager
def orderly_end() -> Iterator[None]:
    """Turn the first ending signal into an exception, and ignore later ones.

    A second Ctrl-C would otherwise end the removal that the first one has begun.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}

    def end(number: int, frame: FrameType | None) -> None:
        for ending in _ENDING:
            signal.signal(ending, signal.SIG_IGN)
        print(f"\n{signal.Signals(number).name}: removing all", file=sys.stderr)
        raise SystemExit(_BY_SIGNAL + number)

    for number in _ENDING:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
