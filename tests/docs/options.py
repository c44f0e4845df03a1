"""The tables of options, from the shapes of documents and the meanings of options."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Final

from nri_resmgr.schema import Form, Shape, shape_of
from nri_resmgr.schema.meanings import meaning_of
from tests.docs.markdown import code, codes, merged

_ENDLESS: Final = 1 << 62

_TYPES: Final = {
    Form.MAPPING: "mapping",
    Form.OPEN_MAPPING: "mapping",
    Form.TEXT: "text",
    Form.AMOUNT: "text or number",
    Form.FLAG: "boolean",
    Form.FRACTION: "number, 0 to 1",
    Form.RAW: "text or number",
}

# Mappings whose keys are listed as options; those of other mappings have other pages.
_OPENED: Final = ("availableResources", "reservedResources", "preserve", "control")


# Of documents of all kinds: another page has their options.
_ELSEWHERE: Final = ("log", "instrumentation")


def options(kind: str, at: str = "", but: Collection[str] = ()) -> Callable[[str], str]:
    """Make the generator of a table of options.

    Args:
        kind: Of the document.
        at: Path below ``spec`` of the mapping whose options these are.
        but: Options that another table has.
    """

    def generate(body: str) -> str:
        rows = {}
        for name, shape in _options(_below(shape_of(kind), at)):
            path = f"{at}.{name}" if at else name
            if name not in but and path not in _ELSEWHERE:
                rows[name] = (_type(shape), _default(shape), meaning_of(kind, path))
        return merged(body, ("option", "type", "default", "meaning"), rows)

    return generate


def _below(shape: Shape, path: str) -> Shape:
    keys = path.replace("[]", ".*").split(".") if path else ()
    return shape.at(*keys)


def _options(shape: Shape) -> Iterator[tuple[str, Shape]]:
    for key, one in shape.keys.items():
        if key in _OPENED and one.keys:
            yield from ((f"{key}.{below}", part) for below, part in one.keys.items())
        else:
            yield key, one


def _type(shape: Shape) -> str:
    match shape.form:
        case Form.NUMBER:
            least = f"number, {shape.low} "
            endless = shape.high is None or shape.high >= _ENDLESS
            return least + ("or more" if endless else f"to {shape.high}")
        case Form.CHOICE:
            return _words(shape, "name")
        case Form.LIST if shape.items:
            return f"list of {_items(shape.items)}"
        case form:
            return _TYPES[form]


def _items(shape: Shape) -> str:
    match shape.form:
        case Form.MAPPING:
            return "mappings"
        case Form.CHOICE:
            return _words(shape, "names")
        case _:
            return "text"


def _words(shape: Shape, names: str) -> str:
    return names if shape.by_name else codes(word for word in shape.choices if word)


def _default(shape: Shape) -> str | None:
    """Write the reader's default; None where it is written by hand."""
    match shape.default:
        case None:
            return None
        case str() as text:
            return code(text)
        case default:
            return code(json.dumps(default))
