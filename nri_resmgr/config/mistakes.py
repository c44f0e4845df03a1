"""Finds all mistakes of a document; the daemon itself stops at the first one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.policy_config import PolicyConfig, ReadDocument
from nri_resmgr.config.syntax import parse_yaml

# Each mistake takes one more reading of the document.
_MOST: Final = 100

_INDEX: Final = re.compile(r"\[(\d+)\]")


class DocumentCheck(msgspec.Struct, frozen=True):
    """The result of checking one document.

    Attributes:
        config: The configuration; None if there are mistakes.
        mistakes: In the order in which they were found.
        is_complete: Whether all mistakes were found. A part that others refer to
            cannot be left out to find more.
    """

    config: PolicyConfig | None
    mistakes: tuple[BadSyntax | BadSetting, ...] = ()
    is_complete: bool = True


def check_document(
    text: str, read: ReadDocument, fit: Callable[[PolicyConfig], object]
) -> DocumentCheck:
    """Read a document repeatedly, each time without the last mistake found.

    Args:
        text: The document.
        read: Reads it once it is parsed.
        fit: Raises BadSetting where a configuration does not fit a machine.
    """
    try:
        document = parse_yaml(text) if text.strip() else None
    except BadSyntax as error:
        return DocumentCheck(None, (error,), is_complete=False)
    return _Search(document, read, fit).run()


class _Search:
    """Collects mistakes of a parsed document, and removes them from it."""

    def __init__(
        self,
        document: Any,
        read: ReadDocument,
        fit: Callable[[PolicyConfig], object],
    ) -> None:
        self._document = document
        self._read = read
        self._fit = fit
        self._found: dict[str, BadSetting] = {}  # by path
        self._removed: dict[str, list[int]] = {}  # places, by the path of their list

    def run(self) -> DocumentCheck:
        while len(self._found) < _MOST:
            try:
                config = self._read(self._document)
                self._fit(config)
            except BadSetting as error:
                path = self._as_written(error.path)
                if path in self._found:
                    break  # it is only missing because it was removed here
                self._found[path] = BadSetting(path, error.why)
                if not self._remove(error.path):
                    break
            else:
                mistakes = tuple(self._found.values())
                return DocumentCheck(None if mistakes else config, mistakes)
        return DocumentCheck(None, tuple(self._found.values()), is_complete=False)

    def _as_written(self, path: str) -> str:
        """Translate the list indices of a path to those of the original document."""
        written = ""
        for part in re.split(r"(\[\d+\])", path):
            if match := _INDEX.fullmatch(part):
                place = int(match[1])
                for removed in sorted(self._removed.get(written, ())):
                    place += place >= removed
                written += f"[{place}]"
            else:
                written += part
        return written

    def _remove(self, path: str) -> bool:
        """Remove what is at *path*, if nothing can refer to it."""
        found = _find(self._document, path.removeprefix("$"))
        if found is None:
            return False
        holder, key = found
        if not _is_plain(holder[key]):
            return False
        if isinstance(holder, list):
            written = self._as_written(path)
            start = written.rindex("[")
            places = self._removed.setdefault(written[:start], [])
            places.append(int(written[start + 1 : -1]))
        del holder[key]
        return True


def _find(holder: Any, rest: str) -> tuple[Any, Any] | None:
    """Find the container of the value at a path, and the value's key in it."""
    keys: list[Any] = []
    if isinstance(holder, dict):
        keys = [key for key in holder if rest.startswith(f".{key}")]
    elif isinstance(holder, list) and (match := _INDEX.match(rest)):
        keys = [place for place in [int(match[1])] if place < len(holder)]
    for key in keys:  # more than one may match: keys can contain dots
        end = len(f"[{key}]" if isinstance(holder, list) else f".{key}")
        if end == len(rest):
            return holder, key
        if found := _find(holder[key], rest[end:]):
            return found
    return None


def _is_plain(value: object) -> bool:
    """Return whether a value defines nothing that other parts can refer to."""
    if isinstance(value, list):
        return not any(isinstance(one, dict | list) for one in value)
    return not isinstance(value, dict)
