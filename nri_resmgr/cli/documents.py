"""Files of documents on the command line, of which ``-`` is standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from nri_resmgr.cli.flags import Parser
from nri_resmgr.host.bounded import DOCUMENT, read_whole, reason
from nri_resmgr.host.text_file import UnreadableFile, read_text_file

_STANDARD_INPUT: Final = Path("-")


def add_files(parser: Parser, what: str) -> None:
    """Add the argument FILE, one or more; *what* describes one of them."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help=f"{what}; - is standard input",
    )


def name_of(path: Path) -> Path:
    """Return the name of a file for messages."""
    return Path("standard input") if path == _STANDARD_INPUT else path


def read_document(path: Path) -> str:
    """Read a file of the command line.

    Raises:
        UnreadableFile: It cannot be read, is too long, or is not UTF-8.
    """
    if path != _STANDARD_INPUT:
        return read_text_file(path)
    try:
        return read_whole(sys.stdin.buffer.read, DOCUMENT).decode()
    except OSError as error:
        raise UnreadableFile(name_of(path), reason(error)) from None
    except UnicodeDecodeError as error:
        why = f"not UTF-8 at byte {error.start}"
        raise UnreadableFile(name_of(path), why) from None
