"""Reads text files that the user names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.host.bounded import DOCUMENT, read_file, reason
from nri_resmgr.values import InputError


@dataclass(eq=False)
class UnreadableFile(InputError):
    """A file that the user named cannot be read."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"cannot read {self.path}: {self.why}"


def read_text_file(path: Path) -> str:
    """Return the text of *path*.

    Raises:
        UnreadableFile: It is missing, not readable for this process, too large, or
            not UTF-8.
    """
    try:
        return read_file(path, DOCUMENT).decode()
    except OSError as error:
        raise UnreadableFile(path, reason(error)) from None
    except UnicodeDecodeError as error:
        raise UnreadableFile(path, f"not UTF-8 at byte {error.start}") from None
