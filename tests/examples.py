"""Examples of laws that need more, or fewer, of them than others do."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

__all__ = ["examples"]

# Fewer would not even try the ends of what is drawn.
_FEWEST: Final = 3


def examples(factor: float) -> settings:
    """Return how a law is tried on *factor* times as many examples as others.

    A number would hold for ``make check``, too, which tries laws on few examples.
    """
    count = round(settings().max_examples * factor)
    return settings(max_examples=max(_FEWEST, count))
