"""Equality and repr of the wire's values, written once instead of per class."""

from __future__ import annotations

from typing import ClassVar


class Compared:
    """A value that equals another of its class with the same fields.

    attrs writes both for each class that is imported: 1.4 million instructions of
    every start, where they serve tests and people who print.
    """

    __slots__ = ()

    __match_args__: ClassVar[tuple[str, ...]] = ()  # attrs puts all fields here

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self), *self._content()))

    def __repr__(self) -> str:
        pairs = zip(self.__match_args__, self._content(), strict=True)
        shown = ", ".join(f"{name}={value!r}" for name, value in pairs)
        return f"{type(self).__name__}({shown})"

    def _content(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)
