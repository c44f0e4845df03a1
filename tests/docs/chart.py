"""The table of the Helm chart's values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.docs.markdown import code, escaped, table

_VALUES: Final = Path(__file__).parents[2] / "deploy" / "helm" / "values.yaml"
_KEY: Final = re.compile(r"(?P<indent> *)(?P<key>\w+):")
_MEANING: Final = "# -- "
_LONGEST: Final = 60  # characters of a default


def chart_values(_: str) -> str:
    """Write a row for each value with a comment that begins with ``# --``."""
    text = _VALUES.read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    rows = (
        (code(".".join(path)), _default(_at(values, path)), escaped(meaning))
        for path, meaning in described(text)
    )
    return table(("value", "default", "meaning"), rows)


def described(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return the paths that have a meaning, with it, in the order of the file."""
    path: list[tuple[int, str]] = []
    meaning = ""
    for line in text.splitlines():
        if line.strip().startswith(_MEANING):
            meaning = line.strip().removeprefix(_MEANING)
        elif found := _KEY.match(line):
            indent = len(found["indent"])
            path = [one for one in path if one[0] < indent]
            path.append((indent, found["key"]))
            if meaning:
                yield tuple(key for _, key in path), meaning
            meaning = ""


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        values = values[key]
    return values


def _default(value: object) -> str:
    text = json.dumps(value)
    return code(text) if len(text) <= _LONGEST else "see `values.yaml`"
