"""Renames CRI Resource Manager's annotations in manifests, which stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import yaml

from nri_resmgr.config.errors import BadSyntax
from nri_resmgr.config.migrate.section import Note
from nri_resmgr.config.syntax import parse_yaml

CRI_RM: Final = "cri-resource-manager.intel.com"
_OURS: Final = "resource-policy.nri.io"

# Of older releases: one value, or a mapping of containers to values.
_OLD: Final = ("prefer-isolated-cpus", "prefer-shared-cpus", "memory-type")
_PER_CONTAINER: Final = "cold-start"
_AFFINITY: Final = ("affinity", "anti-affinity")

_READ_AS_IT_IS: Final = "values of single containers; read here in this form, too"
_TWICE: Final = "the new key is present, and wins; remove this one"


class Renamed(msgspec.Struct, frozen=True):
    """A manifest with new keys.

    Attributes:
        text: All but the keys is unchanged, comments included.
    """

    text: str
    notes: tuple[Note, ...]


class _Key(msgspec.Struct, frozen=True):
    """A key of annotations.

    Attributes:
        start: Its place in the text, quotes included.
        line: In the file, counted from 1.
        value: Its value; None if that is no text.
    """

    name: str
    start: int
    end: int
    line: int
    value: str | None


def rename_annotations(text: str, line: int = 0) -> Renamed:
    """Rename the keys of one document, which is valid YAML.

    Args:
        text: The document.
        line: How many lines of its file are before it.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    edits: dict[int, tuple[int, str]] = {}
    notes: dict[int, Note] = {}
    for keys in _annotations(root, line):
        names = {key.name for key in keys}
        for key in sorted(keys, key=_is_old):
            new = _new_name(key)
            if isinstance(new, Note):
                notes[key.start] = new
            elif new in names:
                notes[key.start] = Note(_shown(key), _TWICE)
            elif new:
                names.add(new)
                # Only the name is replaced, so quotes stay.
                written = text[key.start : key.end].replace(key.name, new)
                edits[key.start] = key.end, written
    for start in sorted(edits, reverse=True):
        end, new = edits[start]
        text = text[:start] + new + text[end:]
    return Renamed(text, tuple(notes[start] for start in sorted(notes)))


def _is_old(key: _Key) -> bool:
    # The older form has the lowest precedence, so it must not take the new key first.
    return key.name.startswith(f"{CRI_RM}/")


def _new_name(key: _Key) -> str | Note | None:
    """Return the new name of a key, why it has none, or None for a foreign key."""
    head, _, tail = key.name.partition("/")
    if head == CRI_RM:
        return _new_name_of_old(key, tail)
    if not head.endswith(f".{CRI_RM}"):
        return None
    stem = head.removesuffix(f".{CRI_RM}")
    return f"{stem}.{_OURS}" + key.name.removeprefix(head)


def _new_name_of_old(key: _Key, tail: str) -> str | Note:
    if tail in _AFFINITY:
        return f"{_OURS}/{tail}"
    if tail in _OLD and not _is_mapping(key.value):
        return f"{tail}.{_OURS}"
    known = tail in (*_OLD, _PER_CONTAINER)
    return Note(_shown(key), _READ_AS_IT_IS if known else "no such annotation here")


def _is_mapping(value: str | None) -> bool:
    try:
        return isinstance(parse_yaml(value or ""), Mapping)
    except BadSyntax:
        return False


def _shown(key: _Key) -> str:
    return f"line {key.line}, {key.name}"


def _annotations(root: yaml.Node | None, line: int) -> Iterator[list[_Key]]:
    """Yield the keys of each ``metadata.annotations``, as those of pod templates."""
    waiting, seen = [root] if root else [], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # references (*) lead to the same node again
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        if isinstance(node, yaml.MappingNode):
            waiting += [value for _, value in node.value]
            found = _value(_value(node, "metadata"), "annotations")
            if isinstance(found, yaml.MappingNode) and id(found) not in seen:
                yield [
                    _key(key, value, line)
                    for key, value in found.value
                    if isinstance(key, yaml.ScalarNode)
                ]


def _value(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _key(key: yaml.ScalarNode, value: yaml.Node, line: int) -> _Key:
    start, end = key.start_mark, key.end_mark
    text = value.value if isinstance(value, yaml.ScalarNode) else None
    return _Key(key.value, start.index, end.index, line + start.line + 1, text)
