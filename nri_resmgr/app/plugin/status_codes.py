"""The status of an error in a reply: a ttRPC code by the branch, and its text."""

from __future__ import annotations

from typing import Final

from nri_proto import Code
from nri_resmgr.stub.errors import (
    RequestRejected,
    SessionError,
    UnsolicitedUpdatesUnsafe,
)
from nri_resmgr.values import HostError, InputError, PolicyError

CODES: Final[tuple[tuple[type[Exception], Code], ...]] = (
    (PolicyError, Code.RESOURCE_EXHAUSTED),
    (InputError, Code.INVALID_ARGUMENT),
    (HostError, Code.FAILED_PRECONDITION),
    (SessionError, Code.UNAVAILABLE),
    (UnsolicitedUpdatesUnsafe, Code.FAILED_PRECONDITION),
)


def status_of(error: Exception) -> tuple[int, str]:
    """Return the code and the sentence for a handler's exception.

    An exception that is not a `ResmgrError` is a bug, and its sentence says so.
    """
    if isinstance(error, RequestRejected):
        return error.code, error.message
    for branch, code in CODES:
        if isinstance(error, branch):
            return code, str(error)
    return Code.INTERNAL, f"bug in nri-resmgr: {type(error).__name__}: {error}"
