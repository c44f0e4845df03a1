"""The exit status of our programs."""

from __future__ import annotations

from typing import Final

from nri_resmgr.values.errors import InputError, ResmgrError

FAILED: Final = 1
BAD_INPUT: Final = 2


def exit_status(error: ResmgrError) -> int:
    """Return the exit status for an error: 2 for bad input, else 1."""
    return BAD_INPUT if isinstance(error, InputError) else FAILED
