"""``nri-resmgr top``: a live picture of the node."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from typing import Final

from nri_resmgr.cli.render_top import Paint, colored, plain, render_frame
from nri_resmgr.control.client import AnswerLost, Client, NoDaemon

# ECMA-48 and xterm: another screen, no cursor; and back.
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_FROM_THE_TOP: Final = "\x1b[H"
_ERASE_LINE: Final = "\x1b[K"
_ERASE_BELOW: Final = "\x1b[J"


def top(options: argparse.Namespace) -> int:
    """Print pictures until told to stop; just one, if so asked.

    Raises:
        NoDaemon: Nobody is there to begin with.
    """
    client = Client(options.control_socket)
    if options.output == "json":
        return _print_all(options, lambda: _data(client))
    live = sys.stdout.isatty()
    paint = colored if live and not os.environ.get("NO_COLOR") else plain
    if options.once or not live:
        return _print_all(options, lambda: _frame(client, paint))
    first = _frame(client, paint)
    with _own_screen():
        _draw(first)
        while not _is_ended(options.interval):
            _draw(_frame_or_why(client, paint))
    return 0


def _print_all(options: argparse.Namespace, text: Callable[[], str]) -> int:
    print(text(), flush=True)
    while not options.once:
        time.sleep(options.interval)
        print(f"\n{text()}" if options.output == "text" else text(), flush=True)
    return 0


def _data(client: Client) -> str:
    both = {"state": client.get("/v1/state"), "host": client.get("/v1/host")}
    return json.dumps(both)


def _frame(client: Client, paint: Paint) -> str:
    state, host = client.get("/v1/state"), client.get("/v1/host")
    return render_frame(state, host, shutil.get_terminal_size().columns, paint)


def _frame_or_why(client: Client, paint: Paint) -> str:
    try:
        return _frame(client, paint)
    except (NoDaemon, AnswerLost) as error:  # it may come back
        return str(error)


def _draw(frame: str) -> None:
    lines = frame.splitlines()[: shutil.get_terminal_size().lines - 1]
    text = "".join(f"{line}{_ERASE_LINE}\n" for line in lines)
    print(f"{_FROM_THE_TOP}{text}{_ERASE_BELOW}", end="", flush=True)


def _is_ended(seconds: float) -> bool:
    """Wait for the next picture; tell whether somebody pressed q, or hung up."""
    deadline = time.monotonic() + seconds
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin], [], [], left)
        if ready and os.read(sys.stdin.fileno(), 64) in (b"q", b"Q", b""):
            return True
    return False


@contextlib.contextmanager
def _own_screen() -> Iterator[None]:
    """Leave the terminal as it was found, keys without echo in between."""
    keys = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = termios.tcgetattr(keys) if keys is not None else None
    if keys is not None:
        tty.setcbreak(keys)
    print(_ENTER, end="")
    try:
        yield
    finally:
        print(_LEAVE, end="", flush=True)
        if keys is not None and before is not None:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)
