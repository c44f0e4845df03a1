"""Patterns of schemas: the syntax that Go, JavaScript and Python have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NAME_OF_GROUP: Final = re.compile(r"\(\?P<\w+>")


def whole(pattern: str) -> str:
    """Return a pattern of Python as one of the whole text, without names of groups.

    The empty text matches as well: readers take it for an absent one.
    """
    return f"^(?:{_NAME_OF_GROUP.sub('(', pattern)})?$"


def any_case(words: Sequence[str]) -> str:
    """Return the pattern of words in any letter case."""
    return f"^(?:{'|'.join(map(_any_case, words))})$"


def _any_case(word: str) -> str:
    # JavaScript has no inline flag for this.
    return "".join(
        f"[{one.lower()}{one.upper()}]" if one.isalpha() else re.escape(one)
        for one in word
    )
