"""Errors in annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import InputError
from nri_resmgr.values.shorten import shortened

# Characters of a value that are shown. A pod has room for 256 KiB.
SHOWN: Final = 80


@dataclass(eq=False)
class BadAnnotation(InputError):
    """A container is refused because of an annotation that must not be ignored.

    Attributes:
        pod: ``namespace/name``.
        why: What is wrong, and what would be accepted.
    """

    pod: str
    container: str
    key: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.pod}/{self.container}: annotation {self.key}: {self.why}"


@dataclass(eq=False)
class NotAccepted(InputError):
    """A key does not accept a value; the caller adds the key and the container."""

    value: str
    accepted: str

    def __str__(self) -> str:
        return f"{shortened(self.value, SHOWN)!r} is not {self.accepted}"
