"""Finds the line and column of a setting in the text of a document."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import yaml

from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.syntax import compose_yaml


class Position(msgspec.Struct, frozen=True):
    """A place in a text, both counted from 1 as editors do; 0 if unknown."""

    line: int = 0
    column: int = 0


class Positions:
    """The places of all settings of one document.

    Args:
        text: One document, as `parse_yaml` accepts it; else no place is known.
    """

    def __init__(self, text: str) -> None:
        try:
            self._root = compose_yaml(text)
        except BadSyntax:
            self._root = None

    def of(self, mistake: BadSyntax | BadSetting) -> Position:
        """Return the place of a mistake."""
        if isinstance(mistake, BadSyntax):
            return Position(mistake.line, mistake.column)
        return self.at(mistake.path)

    def at(self, path: str) -> Position:
        """Return the place of a key or list item, such as ``$.spec.pools[0].cpu``.

        For one that the document lacks, it is the place of what should contain it.
        """
        if self._root is None:
            return Position()
        mark = self._root.start_mark
        best = 0
        for end, found in _along(self._root, path.removeprefix("$"), 0):
            if end > best:
                best, mark = end, found
        return Position(mark.line + 1, mark.column + 1)


def _along(node: yaml.Node, rest: str, at: int) -> Iterator[tuple[int, yaml.Mark]]:
    """Yield the places along a path, each with the length of the path up to it."""
    for name, mark, value in _parts(node):
        # More than one may match: keys can contain dots.
        if rest.startswith(name) and rest[len(name) : len(name) + 1] in ("", ".", "["):
            yield at + len(name), mark
            yield from _along(value, rest[len(name) :], at + len(name))


def _parts(node: yaml.Node) -> Iterator[tuple[str, yaml.Mark, yaml.Node]]:
    match node:
        case yaml.MappingNode():
            for key, value in node.value:
                yield f".{key.value}", key.start_mark, value
        case yaml.SequenceNode():
            for index, value in enumerate(node.value):
                yield f"[{index}]", value.start_mark, value
