"""Changes of requests as text: a field, and its content before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from nri_resmgr.sdk.chain import Change, Content

_ABSENT: Final = "unset"


def change_text(change: Change) -> str:
    """Format a change; of a list, the items that are gone and the new ones.

    >>> change_text(Change("linux.resources.cpu.cpus", None, "0-3"))
    'linux.resources.cpu.cpus unset -> 0-3'
    >>> change_text(Change("env", ["A=1"], ["A=2", "B=3"]))
    'env -A=1 +A=2 +B=3'
    """
    before, after = change.before, change.after
    if not isinstance(before, list) or not isinstance(after, list):
        return f"{change.field} {content_text(before)} -> {content_text(after)}"
    gone = [f"-{content_text(item)}" for item in before]
    new = [f"+{content_text(item)}" for item in after]
    return " ".join((change.field, *(gone + new or ["in another order"])))


def content_text(content: Content) -> str:
    """Format the content of a field.

    >>> content_text([{"key": "A", "value": "b c"}, {"key": "-D"}])
    '"A=b c", -D'
    """
    match content:
        case None:
            return _ABSENT
        case str():
            return _word(content)
        case list():
            return ", ".join(map(content_text, content))
        case {"key": str(key)}:  # a variable of the environment
            return _word(key if key.startswith("-") else _pair(key, content))
        case _:
            return _json(content)


def _word(text: str) -> str:
    return _json(text) if not text or " " in text or '"' in text else text


def _pair(key: str, variable: Mapping[str, Content]) -> str:
    return f"{key}={variable.get('value', '')}"


def _json(content: Content) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
