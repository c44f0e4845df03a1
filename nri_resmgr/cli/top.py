"""``nri-resmgr top``: CPUs, memory and pressure of the node, live."""

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

from nri_resmgr.cli.flags import Parser, add_client_flags
from nri_resmgr.cli.render_top import Paint, colored, plain, render_frame
from nri_resmgr.cli.streams import write_unfiltered
from nri_resmgr.control.client import AnswerLost, Client, NoDaemon
from nri_resmgr.values.printable import printable, printable_data, printable_json

_INTERVAL: Final = 2.0  # seconds
_MIN_INTERVAL, _MAX_INTERVAL = 0.1, 3600.0

# ECMA-48 and xterm: the alternate screen without a cursor, and back.
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_FROM_THE_TOP: Final = "\x1b[H"
_ERASE_LINE: Final = "\x1b[K"
_ERASE_BELOW: Final = "\x1b[J"

_EXAMPLES: Final = """\
examples:
  nri-resmgr top                   until q or Ctrl-C
  nri-resmgr top --once            one frame, such as for a report
  nri-resmgr top --interval 0.5    two frames a second
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Draw the machine's CPUs with the containers that hold them, memory by node, "
        "and pressure, repeatedly. q or Ctrl-C ends it."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("--once", action="store_true", help="print one frame and exit")
    parser.add_argument(
        "--interval",
        type=_seconds,
        default=_INTERVAL,
        metavar="SECONDS",
        help="time between two frames in seconds, default %(default)s",
    )
    add_client_flags(parser, "text, or a JSON object per frame; default %(default)s")


def run(options: argparse.Namespace) -> int:
    """Print frames until interrupted; only one with ``--once``.

    Raises:
        NoDaemon: There is no daemon at the start.
    """
    client = Client(options.control_socket)
    if options.output == "json":
        return _print_all(options, lambda: _data(client))
    live = sys.stdout.isatty()
    paint = colored if live and not os.environ.get("NO_COLOR") else plain
    if options.once or not live:
        return _print_all(options, lambda: _frame(client, paint))
    # Before the screen changes: without a daemon, the error must stay visible.
    first = _frame(client, paint)
    with _alternate_screen():
        _draw(first)
        while not _is_ended(options.interval):
            _draw(_frame_or_why(client, paint))
    return 0


def _print_all(options: argparse.Namespace, text: Callable[[], str]) -> int:
    write_unfiltered(f"{text()}\n")
    while not options.once:
        time.sleep(options.interval)
        gap = "\n" if options.output == "text" else ""
        write_unfiltered(f"{gap}{text()}\n")
    return 0


def _data(client: Client) -> str:
    both = {"state": client.get("/v1/state"), "host": client.get("/v1/host")}
    return printable_json(json.dumps(both))


def _frame(client: Client, paint: Paint) -> str:
    state = printable_data(client.get("/v1/state"))
    host = printable_data(client.get("/v1/host"))
    return render_frame(state, host, shutil.get_terminal_size().columns, paint)


def _frame_or_why(client: Client, paint: Paint) -> str:
    try:
        return _frame(client, paint)
    except (NoDaemon, AnswerLost) as error:  # it may be restarted
        return printable(str(error))


def _draw(frame: str) -> None:
    # One line less than there are: after the last one the screen would scroll.
    lines = frame.splitlines()[: shutil.get_terminal_size().lines - 1]
    # Erased first: after a line as wide as the screen, its last column would be erased.
    text = "".join(f"{_ERASE_LINE}{line}\n" for line in lines)
    write_unfiltered(f"{_FROM_THE_TOP}{text}{_ERASE_BELOW}")


def _is_ended(seconds: float) -> bool:
    """Wait for the next frame; return whether q was pressed or the terminal closed."""
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
def _alternate_screen() -> Iterator[None]:
    """Use the alternate screen without echo; restore the terminal at the end."""
    keys = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = termios.tcgetattr(keys) if keys is not None else None
    if keys is not None:
        tty.setcbreak(keys)
    write_unfiltered(_ENTER)
    try:
        yield
    finally:
        write_unfiltered(_LEAVE)
        if keys is not None and before is not None:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _MIN_INTERVAL <= seconds <= _MAX_INTERVAL:
        raise argparse.ArgumentTypeError(f"{text!r} is not 0.1 to 3600 seconds")
    return seconds
