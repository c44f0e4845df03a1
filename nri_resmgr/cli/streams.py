"""Standard output and error of a command, on which nothing invisible is written."""

from __future__ import annotations

import sys
from typing import Any, Final, TextIO

from nri_resmgr.values.printable import LINES, printable

_STREAMS: Final = ("stdout", "stderr")


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
    """
    for name in _STREAMS:
        stream = getattr(sys, name)
        # Either may be closed, and None.
        if stream is not None and not isinstance(stream, PrintableStream):
            setattr(sys, name, PrintableStream(stream))


def write_unfiltered(text: str) -> None:
    """Write a text with escape sequences of our own; its values are printable."""
    stream = sys.stdout
    if isinstance(stream, PrintableStream):
        stream = stream.unfiltered
    stream.write(text)
    stream.flush()
