"""Standard output and error of a command: nothing invisible, nothing unencodable."""

from __future__ import annotations

import codecs
import io
import sys
from typing import Any, Final, TextIO

from nri_resmgr.values.printable import LINES, printable

_STREAMS: Final = ("stdout", "stderr")

_LIKENESSES: Final = {
    "█": "#",
    "▒": "=",
    "·": ".",
    "…": "~",
    "µ": "u",
    "→": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "▶": ">",
    "─": "-",
    "│": "|",
    "└": "`",
    "├": "|",
    "┌": "+",
    "┐": "+",
    "┘": "+",
}
"""Of characters of ours, for streams that cannot encode them.

Each is one column as well, so that tables and frames stay aligned.
"""

_LIKENESS: Final = "nri-resmgr-likeness"
"""Our handler of errors of encoding."""


class PrintableStream:
    """A text stream that escapes what is not `printable`, line breaks and tabs aside.

    Args:
        stream: Takes the text, and everything else that is called here.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        self.unfiltered.write(printable(text, LINES))
        return len(text)

    # Any: attributes of all types; callers have the stream typed as a `TextIO`.
    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def make_streams_printable() -> None:
    """Replace the process' standard streams, for all that it prints from now on.

    That includes what has no other edge: argparse's messages, tracebacks, warnings.
    Line breaks in single values are the business of whatever prints lines of them.

    A character that a stream cannot encode, as where `PYTHONIOENCODING` is ASCII or the
    locale is Latin-1, becomes one of ASCII that looks like it, or an escape.
    """
    codecs.register_error(_LIKENESS, _likeness)
    for name in _STREAMS:
        stream = getattr(sys, name)
        # Either may be closed, and None.
        if stream is None or isinstance(stream, PrintableStream):
            continue
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_LIKENESS)
        setattr(sys, name, PrintableStream(stream))


def write_unfiltered(text: str) -> None:
    """Write a text with escape sequences of our own; its values are printable."""
    stream = sys.stdout
    if isinstance(stream, PrintableStream):
        stream = stream.unfiltered
    stream.write(text)
    stream.flush()


def _likeness(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_LIKENESSES.get(one) or _escape(one) for one in lost), error.end


def _escape(one: str) -> str:
    return one.encode("ascii", "backslashreplace").decode("ascii")
