"""Counts with their nouns, for messages."""

from __future__ import annotations


def count_text(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    Args:
        count: The number.
        one: The noun, with its adjectives.
        many: Its plural; by default with an s.

    >>> count_text(1, "free CPU"), count_text(2, "free CPU"), count_text(0, "free CPU")
    ('1 free CPU', '2 free CPUs', '0 free CPUs')
    >>> count_text(1, "class", "classes"), count_text(2, "class", "classes")
    ('1 class', '2 classes')
    """
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def count_are(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun and verb; for the arguments see `count_text`.

    >>> count_are(1, "CPU"), count_are(3, "CPU")
    ('1 CPU is', '3 CPUs are')
    """
    return f"{count_text(count, one, many)} {'is' if count == 1 else 'are'}"
