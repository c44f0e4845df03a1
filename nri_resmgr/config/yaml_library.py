"""PyYAML, without the patterns that the C library spares it."""

from __future__ import annotations

import builtins
import re
from typing import Any, Final

from nri_resmgr.lazy import import_when_touched

__all__ = ["yaml"]

# Each compiles a pattern at its import: the one of what is no text, 57 million
# instructions of some 500 that a start takes, only the reader in Python looks for, the
# one of times only a document that has some.
_MODULES: Final = ("yaml.reader", "yaml.constructor")


class _Pattern:
    """A pattern that is compiled when it is used."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        return getattr(re.compile(self._text, self._flags), name)  # which re keeps


class _Re:
    """Stands for the module ``re``."""

    compile = _Pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(re, name)


def _import(name: str, *how: Any) -> object:
    return _Re() if name == "re" else __import__(name, *how)


import_when_touched(_MODULES, {**vars(builtins), "__import__": _import})

import yaml  # noqa: E402 - from here on it is as it is to be
