"""As much of JSON Schema as our schema uses, to judge answers by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from nri_resmgr.control.routes import SCHEMA

DOCUMENT: Final = json.loads(SCHEMA.read_text())
_KINDS: Final[dict[str, Any]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_KNOWN: Final = {
    *("$ref", "type", "properties", "required", "additionalProperties", "items"),
    *("enum", "const", "pattern", "minimum", "anyOf", "description"),
}


def mistakes(value: Any, name: str) -> list[str]:
    """Say where a value is not what ``$defs`` has under *name*."""
    return list(_mistakes(value, DOCUMENT["$defs"][name], "$"))


def _mistakes(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    assert schema.keys() <= _KNOWN, schema.keys() - _KNOWN
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from _mistakes(value, DOCUMENT["$defs"][name], path)
    if "anyOf" in schema:
        ways = [list(_mistakes(value, one, path)) for one in schema["anyOf"]]
        if all(ways):
            yield from min(ways, key=len)
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "type" in schema and not _is(value, schema["type"]):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    yield from _mistakes_inside(value, schema, path)


def _mistakes_inside(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    match value:
        case dict():
            yield from _mistakes_of_keys(value, schema, path)
        case list():
            for at, one in enumerate(value):
                yield from _mistakes(one, schema.get("items", {}), f"{path}[{at}]")
        case str() if not re.search(schema.get("pattern", ""), value):
            yield f"{path}: {value!r} does not fit {schema['pattern']}"
        case int() if value < schema.get("minimum", value):
            yield f"{path}: {value} is below {schema['minimum']}"


def _mistakes_of_keys(
    value: dict[str, Any], schema: dict[str, Any], path: str
) -> Iterator[str]:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (
        f"{path}.{key}: missing"
        for key in schema.get("required", ())
        if key not in value
    )
    for key, one in value.items():
        if key in known:
            yield from _mistakes(one, known[key], f"{path}.{key}")
        elif rest is False:
            yield f"{path}.{key}: unknown"
        elif isinstance(rest, dict):
            yield from _mistakes(one, rest, f"{path}.{key}")


def _is(value: Any, kinds: str | list[str]) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _KINDS[name]) for name in names)
