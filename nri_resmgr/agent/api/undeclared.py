"""Fields that a definition of the cluster lacks: it is of another version.

Pure: time is an argument. Server-side apply refuses an object as a whole for such a
field, where other writes leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nri_resmgr.values.documents import JsonObject

# structured-merge-diff's sentence. Items of lists have brackets, and are not left out.
_FIELD: Final = re.compile(r"(?<![\w\]])\.([\w.]+): field not declared in schema")

_KEPT: Final = 600.0
"""Seconds for which a field is left out; then the definition may have been updated."""


class UndeclaredFields:
    """The fields of one kind to be left out, as far as the server has named them.

    Attributes:
        paths: Their paths.
    """

    def __init__(self) -> None:
        self.paths: frozenset[str] = frozenset()
        self._until = 0.0

    def note(self, why: str, at: float) -> frozenset[str]:
        """Take the fields that an error names; return those that were not known.

        Args:
            why: The server's sentence.
            at: Now, in monotonic seconds.
        """
        found = frozenset(_FIELD.findall(why)) - self.paths
        if found:
            self.paths |= found
            self._until = at + _KEPT
        return found

    def without(self, body: JsonObject, at: float) -> JsonObject:
        """Return an object without these fields.

        Args:
            body: The object.
            at: Now, in monotonic seconds.
        """
        if at >= self._until:
            self.paths = frozenset()
        for path in self.paths:
            body = _without(body, path.split("."))
        return body


def _without(body: JsonObject, path: list[str]) -> JsonObject:
    name, *rest = path
    if name not in body:
        return body
    if not rest:
        return {key: one for key, one in body.items() if key != name}
    inner = body[name]
    if not isinstance(inner, Mapping):
        return body
    return {**body, name: _without(dict(inner), rest)}
