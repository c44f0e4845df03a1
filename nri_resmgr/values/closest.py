"""The known word that a mistyped one resembles, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return the most similar of the *known* words; empty if none resembles it.

    Args:
        word: The mistyped word.
        known: The words it may stand for.
        least: The least similarity, 0 to 1, as difflib measures it.
    """
    # Late: on the start path, it takes 10 ms, and only mistakes need it.
    import difflib

    return next(iter(difflib.get_close_matches(word, list(known), 1, least)), "")
