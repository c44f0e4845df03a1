"""Errors in configuration documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import InputError
from nri_resmgr.values.shorten import shortened

# Characters. Errors quote the document, and go to the log and to status.
MAX_PATH: Final = 200
MAX_SENTENCE: Final = 600


@dataclass(eq=False)
class BadSyntax(InputError):
    """The text is not YAML, or not one document.

    Attributes:
        line: Counted from 1; 0 where the parser gives none.
        column: Likewise.
    """

    why: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        why = shortened(self.why, MAX_SENTENCE)
        return f"line {self.line}: {why}" if self.line else why


@dataclass(eq=False)
class BadSetting(InputError):
    """A part of the document is invalid, or does not fit this machine.

    Attributes:
        path: Its place, as in ``$.spec.reservedResources.cpu``.
    """

    path: str
    why: str

    def __str__(self) -> str:
        return f"{shortened(self.path, MAX_PATH)}: {shortened(self.why, MAX_SENTENCE)}"
