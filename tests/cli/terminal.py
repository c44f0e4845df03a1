"""A command on a real terminal of some size, with keys, and what the screen shows."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import attrs

from tests.cli.command import ROOT

_WITHIN: Final = 60.0  # seconds; the machine may be busy with other tests
_FROM_THE_TOP: Final = "\x1b[H"
_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@attrs.define(eq=False)
class Terminal:
    """The side of the terminal that a person sees.

    Attributes:
        leader: The file descriptor of that side.
        process: The command.
        text: All that the command has written.
    """

    leader: int
    process: subprocess.Popen[bytes]
    text: str = ""
    # A character may be cut by the end of a piece.
    _decoder: codecs.IncrementalDecoder = attrs.field(
        factory=codecs.getincrementaldecoder("utf-8"), init=False
    )

    def press(self, keys: str) -> None:
        """Send keys, in the sequences of a terminal."""
        os.write(self.leader, keys.encode())

    @property
    def screen(self) -> list[str]:
        """The lines of the last frame, without colours."""
        frame = self.text.rpartition(_FROM_THE_TOP)[2]
        return _SEQUENCE.sub("", frame).replace("\r", "").split("\n")

    def until(self, shows: Callable[[list[str]], bool]) -> list[str]:
        """Read until the screen shows something; return its lines."""
        while not shows(self.screen):
            ready, _, _ = select.select([self.leader], [], [], _WITHIN)
            assert ready, ("not on the screen", self.screen)
            self._read()
        return self.screen

    def rest(self) -> str:
        """Read until the command has ended; return all that it has written."""
        with suppress(OSError):  # EIO: the other end is closed
            while self._read():
                pass
        self.process.wait(_WITHIN)
        return self.text

    def _read(self) -> bytes:
        piece = os.read(self.leader, 1 << 16)
        self.text += self._decoder.decode(piece)
        return piece


@contextmanager
def on_a_terminal(
    *words: str,
    columns: int = 80,
    lines: int = 24,
    environment: dict[str, str] | None = None,
) -> Iterator[Terminal]:
    """Run ``nri-resmgr`` on a terminal of this size."""
    command = (sys.executable, "-m", "nri_resmgr", *words)
    given = {"PYTHONPATH": str(ROOT), "TERM": "xterm", **(environment or {})}
    with running_on_a_terminal(command, given, columns, lines) as terminal:
        yield terminal


@contextmanager
def running_on_a_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    columns: int = 80,
    lines: int = 24,
) -> Iterator[Terminal]:
    """Run any program on a terminal that it controls."""
    leader, follower = pty.openpty()
    size = struct.pack("HHHH", lines, columns, 0, 0)
    fcntl.ioctl(follower, termios.TIOCSWINSZ, size)
    with subprocess.Popen(
        command,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    ) as process:
        os.close(follower)
        try:
            yield Terminal(leader, process)
        finally:
            process.kill()
            os.close(leader)
