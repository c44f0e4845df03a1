"""Reads tests' own YAML with libyaml: what is read while tests are collected.

Each worker of pytest collects all tests, and Python's reader takes ten times as long.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ["read_yaml"]

# PyYAML's C part need not be there.
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """Return the only document of a file."""
    text = path.read_text(encoding="utf-8")
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe loader
