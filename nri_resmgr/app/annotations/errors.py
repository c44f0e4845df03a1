"""What can be wrong with an annotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import InputError
from nri_resmgr.values.shorten import shortened

# Enough to recognize a value by; a whole one may be as long as a book.
SHOWN: Final = 80


@dataclass(eq=False)
class BadAnnotation(InputError):
    """An annotation that must not be misread means nothing.

    Attributes:
        pod: ``namespace/name``.
        container: Its name in the pod.
        key: As it is written in the pod.
        value: As it is written in the pod.
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
    """A value is none of those that a key takes; whose it is, the caller knows."""

    value: str
    accepted: str

    def __str__(self) -> str:
        return f"{shortened(self.value, SHOWN)!r} is not {self.accepted}"
