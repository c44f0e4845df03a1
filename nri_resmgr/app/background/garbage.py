"""Garbage is collected between requests: inside of one a runtime waits for it."""

from __future__ import annotations

import gc
from typing import Final

# Python's own figures: so many young objects more than were freed make a collection
# worth while, and so many collections of the young one of those that survived them.
_YOUNG: Final = 700
_ROUNDS: Final = 10

# What a request leaves behind at most, an update for each of 500 containers: Python
# itself begins here, should nobody have collected meanwhile.
_MOST: Final = 10_000


def prefer_to_collect_between_requests() -> None:
    """Let Python wait for `collect_if_due`, and freeze what is here now.

    What is frozen stays; the collector need not look at it any more.
    """
    gc.freeze()
    gc.set_threshold(_MOST, _ROUNDS, _ROUNDS)
    gc.enable()


def collect_if_due() -> None:
    """Collect as Python would have while the next request is handled."""
    young, middle, old = gc.get_count()
    if young > _YOUNG:
        gc.collect(2 if old > _ROUNDS else int(middle > _ROUNDS))
