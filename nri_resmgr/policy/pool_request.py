"""Requests for static pools in the environment and the command line of a container."""

from __future__ import annotations

from typing import Final

from nri_resmgr.values import StoredValue


class PoolRequest(StoredValue, frozen=True):
    """The request of a container for CPU lists of a pool; texts are as written.

    Attributes:
        pool: The name of the pool; empty for the default one.
        socket: The number of the socket; empty or below 0 for any.
        is_pinned: Whether the container is to run on its lists only.
        lists: The number of exclusive lists; empty if it is not said.
        by_command: Whether the command line asks, by ``cmk isolate``.
        assigned: The CPUs of the lists that it was given, if it has been created.
    """

    pool: str = ""
    socket: str = ""
    is_pinned: bool = True
    lists: str = ""
    by_command: bool = False
    assigned: str = ""


NO_POOL_REQUEST: Final = PoolRequest()
"""Of containers that ask for nothing."""
