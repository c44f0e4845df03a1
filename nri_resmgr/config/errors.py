"""What can be wrong with a configuration document."""

from __future__ import annotations

from nri_resmgr.values import InputError
from nri_resmgr.values.error_fields import with_fields


@with_fields
class BadSyntax(InputError):
    """The text is not YAML, or not one document.

    Attributes:
        line: Counted from 1; 0 where the parser did not tell.
    """

    why: str
    line: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}" if self.line else self.why


@with_fields
class BadSetting(InputError):
    """A part of the document does not mean anything, or not on this machine.

    Attributes:
        path: Where, as in ``$.spec.reservedResources.cpu``.
    """

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"
