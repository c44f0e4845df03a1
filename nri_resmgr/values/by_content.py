"""Equality, hash and repr of values, written once instead of generated per class."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import attrs


@attrs.frozen(eq=False, repr=False)
class ByContent:
    """A value that equals another of its class with the same fields.

    attrs compiles a class' ``__eq__``, ``__hash__`` and ``__repr__`` when it is
    imported: 1.4 of the 2.5 million instructions that a class costs each start. Of
    most classes no method of these is called before the first request, if ever.
    They do here what attrs' own do, with the marks ``eq``, ``hash`` and ``repr`` of
    `attrs.field`, at 0.3 microseconds more per call. Declare a class so::

        @frozen  # of nri_resmgr.values.declared
        class Pin(ByContent): ...
    """

    def __eq__(self, other: object) -> bool:
        # Any: mypy takes a class for one of its instances where it has to be hashable.
        kind: Any = type(self)
        if type(other) is not type(self):
            return NotImplemented
        content = _compared(kind)
        return bool(content(self) == content(other))

    def __hash__(self) -> int:
        kind: Any = type(self)
        return hash((kind, _hashed(kind)(self)))

    def __repr__(self) -> str:
        fields = (field for field in attrs.fields(type(self)) if field.repr)
        shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields)
        return f"{type(self).__name__}({shown})"


@cache
def _compared(kind: Any) -> Callable[[object], object]:
    return _content([field.name for field in attrs.fields(kind) if field.eq])


@cache
def _hashed(kind: Any) -> Callable[[object], object]:
    marks = {field: field.hash for field in attrs.fields(kind)}
    return _content([f.name for f, mark in marks.items() if _counts(mark, f.eq)])


def _counts(hash_mark: bool | None, eq_mark: bool) -> bool:  # noqa: FBT001 - attrs' marks
    return eq_mark if hash_mark is None else hash_mark


def _content(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else type  # nothing differs within a class
