"""Examples and steps of laws that need more, or fewer, of them than others do."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

__all__ = ["examples", "steps"]

# Fewer would not even try the ends of what is drawn.
_FEWEST: Final = 3


def examples(factor: float) -> settings:
    """Return how a law is tried on *factor* times as many examples as others.

    A number would hold for ``make check``, too, which tries laws on few examples.
    """
    count = round(settings().max_examples * factor)
    return settings(max_examples=max(_FEWEST, count))


def steps(count: int, factor: float = 1) -> settings:
    """Return how a state machine is tried: with at most *count* steps in each example.

    A number alone would hold for ``make check``, too, which takes fewer steps.

    Args:
        count: Steps, at most.
        factor: As of `examples`.
    """
    most = min(count, settings().stateful_step_count)
    return settings(examples(factor), stateful_step_count=most)
