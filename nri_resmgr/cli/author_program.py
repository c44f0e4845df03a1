"""Runs a plugin's program as Python does, with the author's frames in tracebacks only.

``python -m nri_resmgr.cli.author_program PROGRAM ARGUMENT...``. The SDK finds most
mistakes of authors, and its frames would hide the line to which they lead. At SIGUSR1
the program prints where it is.
"""

from __future__ import annotations

import runpy
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final

from nri_resmgr.values.exit_status import FAILED

# Packages whose frames are not the author's.
_HIDDEN: Final = frozenset({"nri_resmgr", "nri_proto", "google", "asyncio", "runpy"})

_INTERRUPTED: Final = 130  # 128 + SIGINT, as in shells


def main() -> int:
    """Run the program; return the exit status of one that does not exit by itself."""
    del sys.argv[0]
    program = Path(sys.argv[0])
    if not program.is_dir():  # else runpy adds it
        sys.path.insert(0, str(program.parent))
    signal.signal(signal.SIGUSR1, _show_where)
    try:
        runpy.run_path(str(program), run_name="__main__")
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - any error of the author's is reported
        for one in _chain_of(error):
            _show_author(one)
        traceback.print_exception(error)
        return FAILED
    return 0


def _chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [before for before in (one.__cause__, one.__context__) if before]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def _show_author(error: BaseException) -> None:
    kept = [
        trace for trace in _traces(error.__traceback__) if _is_authors(trace.tb_frame)
    ]
    # An error without any is a fault of ours, but for one of the syntax, which names
    # the line itself.
    if kept or isinstance(error, SyntaxError):
        shown: TracebackType | None = None
        for one in reversed(kept):
            shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
        error.__traceback__ = shown


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _show_where(_: int, frame: FrameType | None) -> None:
    frames = traceback.walk_stack(frame)
    authors = [(one, line) for one, line in frames if _is_authors(one)]
    if authors:
        print("The program is here (most recent call last):", file=sys.stderr)
        stack = traceback.StackSummary.extract(iter(reversed(authors)))
        print("".join(stack.format()), end="", file=sys.stderr, flush=True)


def _is_authors(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package not in _HIDDEN and frame.f_code.co_filename != __file__


if __name__ == "__main__":
    sys.exit(main())
