"""What can be wrong with a configuration document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import InputError
from nri_resmgr.values.shorten import shortened

# A document may be one long word, and each complaint goes to the log and to status.
_PATH: Final = 200
_SENTENCE: Final = 600


@dataclass(eq=False)
class BadSyntax(InputError):
    """The text is not YAML, or not one document.

    Attributes:
        line: Counted from 1; 0 where the parser did not tell.
    """

    why: str
    line: int = 0

    def __str__(self) -> str:
        why = shortened(self.why, _SENTENCE)
        return f"line {self.line}: {why}" if self.line else why


@dataclass(eq=False)
class BadSetting(InputError):
    """A part of the document does not mean anything, or not on this machine.

    Attributes:
        path: Where, as in ``$.spec.reservedResources.cpu``.
    """

    path: str
    why: str

    def __str__(self) -> str:
        return f"{shortened(self.path, _PATH)}: {shortened(self.why, _SENTENCE)}"
