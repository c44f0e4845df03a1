"""Comparison of two trees of plain data, leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def unequal(now: Any, before: Any, path: str = "") -> Iterator[str]:
    """Return a sentence for each leaf in which two trees differ."""
    if isinstance(now, list | tuple) and isinstance(before, list | tuple):
        now, before = dict(enumerate(now)), dict(enumerate(before))
    if isinstance(now, dict) and isinstance(before, dict):
        for key in {**before, **now}:
            yield from unequal(now.get(key), before.get(key), f"{path}/{key}")
    elif now != before:
        yield f"{path} is {now!r}, not {before!r}"
