"""Texts that are nearly good: samples with parts cut, doubled, moved or replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import yaml
from hypothesis import strategies as st

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

# What breaks readers: numbers that are too long, signs that are no letters, depth.
ODD: Final = (
    *("", "-1", "0", "1e400", "NaN", "Infinity", "null", "true", "off", "~", "0-65535"),
    *("9" * 30, "9" * 5000, "²", "\x00", "\x85", "\u2028", "\\ud800", "\udc80"),
    *("[" * 40, "[" * 5000, "{", '"', "'", "\n", "\n\n", "\t", ":", "&a ", "*a"),
    *("<<: *a", "- ", "? ", "!!python/name:os.system ", "!!binary ", "---\n", "#"),
    *("a" * 300, "%2f", "%ff", "..", "/", "\\", "1.2.3", "$", "${", "[a", "*"),
)

_TOKEN: Final = re.compile(r"[A-Za-z0-9_.-]+|[^A-Za-z0-9_.\s-]")
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**63, 10**30, 0.5, float("inf"), float("nan")),
    *("", "1", "500m", "2Gi", "cpuset:0", "[", "x" * 300, [], {}, [[]], [None]),
)


@st.composite
def mutants(draw: Draw, samples: Sequence[str]) -> str:
    """Draw a sample with a few of its parts mutated."""
    text: str = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 4))):
        text = draw(st.sampled_from(_EDITS))(draw, text)
    return text


def _cut(draw: Draw, text: str) -> str:
    begin, end = _span(draw, text)
    return text[:begin] + text[end:]


def _double(draw: Draw, text: str) -> str:
    begin, end = _span(draw, text)
    at = draw(st.integers(0, len(text)))
    return text[:at] + text[begin:end] + text[at:]


def _put_in(draw: Draw, text: str) -> str:
    at = draw(st.integers(0, len(text)))
    new: str = draw(st.sampled_from(ODD) | st.text(max_size=5))
    return text[:at] + new + text[at:]


def _replace_token(draw: Draw, text: str) -> str:
    found = list(_TOKEN.finditer(text))
    if not found:
        return text
    here, other = draw(st.sampled_from(found)), draw(st.sampled_from(found))
    new: str = draw(st.sampled_from((other[0], *ODD)))
    return text[: here.start()] + new + text[here.end() :]


def _change_tree(draw: Draw, text: str) -> str:
    """Change a value of a document, which stays one."""
    try:
        tree = yaml.load(text, Loader=yaml.CSafeLoader)
        places = list(_places(tree))
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
    if not places:
        return text
    holder, key = draw(st.sampled_from(places))
    other, place = draw(st.sampled_from(places))
    match draw(st.sampled_from(["value", "move", "drop", "rename"])):
        case "value":
            holder[key] = draw(st.sampled_from(_VALUES))
        case "move":
            holder[key] = json.loads(json.dumps(other[place], default=str))
        case "drop":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[draw(st.sampled_from(ODD) | st.text(max_size=5))] = holder.pop(key)
    return json.dumps(tree, default=str, skipkeys=True)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys: Any = ()
    if isinstance(tree, dict):
        keys = list(tree)
    elif isinstance(tree, list):
        keys = range(len(tree))
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def _change_line(draw: Draw, text: str) -> str:
    """Change the document in one of several lines, as recordings have them."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at = draw(st.integers(0, len(lines) - 1))
    lines[at] = _change_tree(draw, lines[at]).rstrip("\n") + "\n"
    return "".join(lines)


def _span(draw: Draw, text: str) -> tuple[int, int]:
    begin = draw(st.integers(0, len(text)))
    return begin, min(len(text), begin + draw(st.sampled_from((1, 2, 5, 20, 100))))


_EDITS: Final = (_cut, _double, _put_in, _replace_token, _change_tree, _change_line)
