"""Errors in annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import InputError
from nri_resmgr.values.shorten import shortened

# Characters of a value that are shown. A pod has room for 256 KiB.
SHOWN: Final = 80


@dataclass(eq=False)
class NotAccepted(InputError):
    """A key does not accept a value; the caller adds the key and the container."""

    value: str
    accepted: str

    def __str__(self) -> str:
        return f"{shortened(self.value, SHOWN)!r} is not {self.accepted}"
