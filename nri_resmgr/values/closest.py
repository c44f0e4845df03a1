"""The known word that a mistyped one resembles, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, known: Iterable[str]) -> str:
    """Return the most similar of the *known* words; empty if none resembles it."""
    # Late: on the start path, it takes 10 ms, and only mistakes need it.
    import difflib

    return next(iter(difflib.get_close_matches(word, list(known), n=1)), "")
