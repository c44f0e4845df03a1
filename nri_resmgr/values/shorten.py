"""Quoted input, shortened for messages."""

from __future__ import annotations


def shortened(text: str, most: int) -> str:
    """Return *text*, or its first *most* characters where it is longer.

    >>> shortened("turbo", 3)
    'tur...'
    """
    return text if len(text) <= most else f"{text[:most]}..."
