"""Garbage collection between requests: during a request the runtime waits for it."""

from __future__ import annotations

import gc
from typing import Final

# Python's defaults: the surplus of young objects that makes a collection worth while,
# and the number of young collections before one of the survivors.
_YOUNG: Final = 700
_ROUNDS: Final = 10

# The most that a request leaves behind, an update for each of 500 containers. Beyond
# this Python collects on its own.
_MOST: Final = 10_000


def prefer_to_collect_between_requests() -> None:
    """Leave collection to `collect_if_due`, and freeze all present objects.

    The collector skips frozen objects.
    """
    gc.freeze()
    gc.set_threshold(_MOST, _ROUNDS, _ROUNDS)
    gc.enable()


def keep_present() -> None:
    """Freeze all present objects: those of a node that was just synchronized.

    To look at those of 5,000 containers takes 40 ms, and 90 ms with their history. Most
    stay. Those that do not are freed as usual, but for knots, which wait for `thaw`.
    """
    gc.freeze()


def thaw() -> None:
    """Collect also what was frozen; while there is no session no request waits."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def collect_if_due() -> None:
    """Collect what Python would have collected during the next request."""
    young, middle, old = gc.get_count()
    if young > _YOUNG:
        gc.collect(2 if old > _ROUNDS else int(middle > _ROUNDS))
