"""All mistakes of a document, where the daemon tells the first one only."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from nri_resmgr.config.document import read_config
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.config.syntax import parse_yaml

# Who has more needs another document.
_MOST: Final = 100

_INDEX: Final = re.compile(r"\[(\d+)\]")


class Judgement(msgspec.Struct, frozen=True):
    """What is to be said of one document.

    Attributes:
        config: What it says; None where that is not known for mistakes.
        mistakes: In the order in which they were met.
        is_all: Whether there are no more. A part that others build on cannot be left
            out to look for them.
    """

    config: PolicyConfig | None
    mistakes: tuple[BadSyntax | BadSetting, ...] = ()
    is_all: bool = True


def judge(text: str, fits: Callable[[PolicyConfig], object]) -> Judgement:
    """Read a document again and again, each time without the last mistake.

    Args:
        text: The document.
        fits: Raises BadSetting where a configuration does not fit a machine.
    """
    try:
        document = parse_yaml(text) if text.strip() else None
    except BadSyntax as error:
        return Judgement(None, (error,), is_all=False)
    return _Search(document, fits).judgement()


class _Search:
    """Takes mistakes out of a parsed document."""

    def __init__(self, document: Any, fits: Callable[[PolicyConfig], object]) -> None:
        self._document = document
        self._fits = fits
        self._found: dict[str, BadSetting] = {}  # by path
        self._gone: dict[str, list[int]] = {}  # places, by the path of their list

    def judgement(self) -> Judgement:
        while len(self._found) < _MOST:
            try:
                config = read_config(self._document)
                self._fits(config)
            except BadSetting as error:
                path = self._as_written(error.path)
                if path in self._found:
                    break  # it is only missing because it was taken out
                self._found[path] = BadSetting(path, error.why)
                if not self._take_out(error.path):
                    break
            else:
                return Judgement(
                    None if self._found else config, tuple(self._found.values())
                )
        return Judgement(None, tuple(self._found.values()), is_all=False)

    def _as_written(self, path: str) -> str:
        """Undo what shorter lists did to the numbers in a path."""
        written = ""
        for part in re.split(r"(\[\d+\])", path):
            if match := _INDEX.fullmatch(part):
                place = int(match[1])
                for gone in sorted(self._gone.get(written, ())):
                    place += place >= gone
                written += f"[{place}]"
            else:
                written += part
        return written

    def _take_out(self, path: str) -> bool:
        """Leave out what is at *path*, if nothing can build on it."""
        found = _find(self._document, path.removeprefix("$"))
        if found is None:
            return False
        holder, key = found
        if not _is_plain(holder[key]):
            return False
        if isinstance(holder, list):
            written = self._as_written(path)
            start = written.rindex("[")
            places = self._gone.setdefault(written[:start], [])
            places.append(int(written[start + 1 : -1]))
        del holder[key]
        return True


def _find(holder: Any, rest: str) -> tuple[Any, Any] | None:
    """Find what holds the value at a path, and by which key."""
    keys: list[Any] = []
    if isinstance(holder, dict):
        keys = [key for key in holder if rest.startswith(f".{key}")]
    elif isinstance(holder, list) and (match := _INDEX.match(rest)):
        keys = [place for place in [int(match[1])] if place < len(holder)]
    for key in keys:  # there are keys with dots in them
        end = len(f"[{key}]" if isinstance(holder, list) else f".{key}")
        if end == len(rest):
            return holder, key
        if found := _find(holder[key], rest[end:]):
            return found
    return None


def _is_plain(value: object) -> bool:
    """Tell whether a value defines nothing that other parts may name."""
    if isinstance(value, list):
        return not any(isinstance(one, dict | list) for one in value)
    return not isinstance(value, dict)
