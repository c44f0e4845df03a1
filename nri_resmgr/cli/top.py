"""``nri-resmgr top``: CPUs, memory and pressure of the node, live."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.cpu_use import use_between
from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.look import Paint, look_of_output
from nri_resmgr.cli.output import (
    add_client_flags,
    is_document,
    own_document,
    print_each,
)
from nri_resmgr.cli.render_top import Frame, Sample, cut, render_frame
from nri_resmgr.cli.streams import write_unfiltered
from nri_resmgr.cli.terminal_keys import keys_of
from nri_resmgr.cli.top_view import View, help_text, pressed, scrolled
from nri_resmgr.control.client import AnswerLost, Client, NoDaemon
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable, printable_data

_INTERVAL: Final = 2.0  # seconds
_MIN_INTERVAL, _MAX_INTERVAL = 0.1, 3600.0
_MEASURED: Final = 0.5  # seconds of the use of CPUs in a single frame

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
  nri-resmgr top --once -o json    its data, for programs
  nri-resmgr top --interval 0.5    two frames a second
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Draw the machine's CPUs with the containers that hold them and their use, "
        "pools, memory by node, and pressure, repeatedly. The last line of the screen "
        "shows the keys; q or Ctrl-C ends it."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--once",
        action="store_true",
        help="print one frame and exit; it measures the use of CPUs for half a second",
    )
    parser.add_argument(
        "--interval",
        type=_seconds,
        default=_INTERVAL,
        metavar="SECONDS",
        help="time between two frames in seconds, default %(default)s",
    )
    add_client_flags(parser, each="frame")


def run(options: argparse.Namespace) -> int:
    """Print frames until interrupted; only one with ``--once``.

    Raises:
        NoDaemon: There is no daemon at the start.
    """
    client = Client(options.control_socket)
    if is_document(options.output):
        return _print_documents(client, options)
    paint = look_of_output().paint
    if options.once or not sys.stdout.isatty():
        return _print_frames(client, options, paint)
    node = _Node(client)
    screen = _Screen(paint)
    # Before the screen changes: without a daemon, the error must stay visible.
    sample: Sample | None = node.sample()
    with _alternate_screen():
        while screen.follow_keys(sample, node.problem, options.interval):
            sample = node.sample_or_none()
    return 0


def _print_documents(client: Client, options: argparse.Namespace) -> int:
    while True:
        state, host = client.get("/v1/state"), client.get("/v1/host")
        document = own_document("Frame", {"state": state, "host": host})
        print_each(document, options.output)
        if options.once:
            return 0
        time.sleep(options.interval)


def _print_frames(client: Client, options: argparse.Namespace, paint: Paint) -> int:
    node = _Node(client)
    node.sample()
    gap = ""
    while True:
        time.sleep(_MEASURED if options.once or not gap else options.interval)
        width = shutil.get_terminal_size().columns
        write_unfiltered(f"{gap}{render_frame(node.sample(), width, paint).text}\n")
        if options.once:
            return 0
        gap = "\n"


class _Node:
    """The node, as the daemon's answers have it.

    Attributes:
        problem: Why there is no sample; empty while there is one.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before: JsonObject | None = None
        self.problem = ""

    def sample(self) -> Sample:
        """Query the daemon.

        Raises:
            ResmgrError: There is no answer.
        """
        state = printable_data(self._client.get("/v1/state"))
        host = printable_data(self._client.get("/v1/host"))
        use = use_between(self._before, host)
        self._before, self.problem = host, ""
        return Sample(state, host, use)

    def sample_or_none(self) -> Sample | None:
        """Query a daemon that may be restarting."""
        try:
            return self.sample()
        except (NoDaemon, AnswerLost) as error:
            self._before, self.problem = None, printable(str(error))
            return None


class _Screen:
    """The terminal with a frame, and the view of it that keys change."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._view = View()

    def follow_keys(self, sample: Sample | None, problem: str, seconds: float) -> bool:
        """Draw until it is time for the next sample; return whether that is wanted.

        It is not after the key that ends the program, or when the terminal closed.
        """
        deadline = time.monotonic() + seconds
        while True:
            page = self._draw(sample, problem)
            keys = _pressed_keys(deadline - time.monotonic())
            if keys is None:
                return False
            if not keys:
                return True
            for key in keys:
                view = pressed(self._view, key, page)
                if view is None:
                    return False
                self._view = view

    def _draw(self, sample: Sample | None, problem: str) -> int:
        """Draw, and return the number of lines that scroll."""
        size = shutil.get_terminal_size()
        frame = Frame((problem,))
        if sample:
            frame = render_frame(sample, size.columns, self._paint, self._view)
        # Beside them there are an empty line and that of the keys.
        room = max(size.lines - len(frame.head) - 2, 1)
        self._view = scrolled(self._view, len(frame.lines), room)
        first = self._view.first
        shown = (*frame.head, "", *frame.lines[first : first + room])
        shown = shown[: size.lines - 1]
        shown += ("",) * (size.lines - 1 - len(shown))
        keys = cut(help_text(self._view, len(frame.lines), room), size.columns)
        # Erased first: after a line as wide as the screen, its last column would be
        # erased.
        text = "".join(f"{_ERASE_LINE}{line}\n" for line in shown)
        help_line = self._paint("help", keys)
        write_unfiltered(f"{_FROM_THE_TOP}{text}{_ERASE_BELOW}{help_line}")
        return room


def _pressed_keys(seconds: float) -> list[str] | None:
    """Wait for keys; none after some seconds, None if the terminal closed."""
    if not sys.stdin.isatty():
        time.sleep(max(seconds, 0))
        return []
    ready, _, _ = select.select([sys.stdin], [], [], max(seconds, 0))
    if not ready:
        return []
    data = os.read(sys.stdin.fileno(), 64)
    return keys_of(data) or [""] if data else None


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
