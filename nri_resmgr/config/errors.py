"""What can be wrong with a configuration document."""

from __future__ import annotations

import attrs

from nri_resmgr.values import InputError


@attrs.define(eq=False)
class BadSyntax(InputError):
    """The text is not YAML, or not one document.

    Attributes:
        line: Counted from 1; 0 where the parser did not tell.
    """

    why: str
    line: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}" if self.line else self.why


@attrs.define(eq=False)
class BadSetting(InputError):
    """A part of the document does not mean anything, or not on this machine.

    Attributes:
        path: Where, as in ``$.spec.reservedResources.cpu``.
    """

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"
