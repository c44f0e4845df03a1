"""The documents in a text: of YAML, or one of JSON as ``kubectl -o json`` prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from nri_resmgr.config.syntax import parse_yaml

# That of YAML documents; readers of objects descend into them.
_MAX_DEPTH: Final = 64

_SURROGATE: Final = re.compile(r"\\u[dD]")
_NOT_JSON: Final = object()


def documents_in(text: str) -> list[object]:
    """Return the documents of a text that are not empty, as plain values.

    A list of pods in JSON is read fifty times as fast as by the parser of YAML, and may
    be longer: up to the bound of a file.

    Raises:
        BadSyntax: A document is not YAML, which JSON is.
    """
    if (document := _from_json(text)) is not _NOT_JSON:
        return [document]
    parts: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith("---") and line[3:].strip() in ("", "|", ">"):
            parts.append([])
        else:
            parts[-1].append(line)
    # Each is parsed on its own: parse_yaml limits the size of one document.
    documents = (parse_yaml("".join(lines)) for lines in parts)
    return [document for document in documents if document is not None]


def _from_json(text: str) -> object:
    """Return an object of JSON; `_NOT_JSON` leaves the text to the parser of YAML."""
    # The latter may be half a character, which no output can encode.
    if not text.lstrip().startswith("{") or _SURROGATE.search(text):
        return _NOT_JSON
    try:
        found = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        return _NOT_JSON
    return _NOT_JSON if _is_too_deep(found) else found


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refuse(_: str) -> None:
    raise ValueError


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [child for one in level for child in _children(one)]
        if not level:
            return False
    return True


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
