"""Writes shapes as JSON Schema, draft 2020-12, for editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nri_resmgr.config import API_VERSION
from nri_resmgr.schema.meanings import meaning_of, plain
from nri_resmgr.schema.of_kind import shape_of
from nri_resmgr.schema.patterns import any_case, whole
from nri_resmgr.schema.shape import ANY, Form, Shape
from nri_resmgr.values.documents import JsonObject

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_TYPES: Final[Mapping[Form, Sequence[str]]] = {
    Form.ANYTHING: (),
    Form.MAPPING: ("object",),
    Form.OPEN_MAPPING: ("object",),
    Form.LIST: ("array",),
    Form.TEXT: ("string",),
    Form.AMOUNT: ("string", "number"),
    Form.FLAG: ("boolean",),
    Form.NUMBER: ("integer",),
    Form.FRACTION: ("number",),
}
_RAW: Final[Mapping[type, str]] = {
    str: "string",
    int: "integer",
    bool: "boolean",
    list: "array",
    dict: "object",
}

# YAML 1.1, which the daemon reads, has this word for false.
_OFF: Final = "off"


def json_schema(kind: str) -> JsonObject:
    """Return the schema of documents of one kind.

    Raises:
        BadSetting: There is no such kind.
    """
    return {"$schema": _DIALECT, **_document(kind)}


def json_schema_of_all(kinds: Sequence[str]) -> JsonObject:
    """Return the schema of documents of several kinds, chosen by their ``kind``."""
    documents = {kind: _document(kind) for kind in kinds}
    shared = _share(
        [one["properties"]["spec"]["properties"] for one in documents.values()]
    )
    return {
        "$schema": _DIALECT,
        "title": "A configuration of nri-resmgr",
        "type": "object",
        "properties": {**_head(), "kind": {"enum": list(kinds)}},
        "required": ["apiVersion", "kind"],
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in kinds
        ],
        "$defs": {**documents, **shared},
    }


def _share(specs: Iterable[JsonObject]) -> JsonObject:
    """Replace options that several kinds have by references; return what they refer to.

    Most kinds have the same large sections.
    """
    found: dict[str, JsonObject] = {}
    for spec in specs:
        for key, value in spec.items():
            if "properties" not in value and "items" not in value:
                continue
            others = [name for name in found if name.partition("-")[0] == key]
            known = next((name for name in others if found[name] == value), None)
            name = known or f"{key}-{len(others) + 1}"
            found[name] = value
            spec[key] = {"$ref": f"#/$defs/{name}"}
    return found


def _document(kind: str) -> JsonObject:
    spec = _value(shape_of(kind), (kind, ""), is_nullable=True)
    return {
        "title": kind,
        "type": "object",
        "properties": {
            **_head(),
            "kind": {"const": kind},
            # What the cluster adds; the daemon ignores both.
            "metadata": {},
            "spec": spec,
            "status": {},
        },
        "required": ["apiVersion", "kind"],
        "additionalProperties": False,
    }


def _head() -> JsonObject:
    return {"apiVersion": {"const": API_VERSION}}


def _value(shape: Shape, at: tuple[str, str], *, is_nullable: bool) -> JsonObject:
    """Write a value; *at* is the kind and the path below ``spec``."""
    found: JsonObject = {}
    if text := plain(meaning_of(*at)):
        found["description"] = text
    found |= _kind_of_value(shape, is_nullable=is_nullable)
    found |= _parts(shape, at)
    if shape.low is not None:
        found["minimum"] = shape.low
    if shape.high is not None:
        found["maximum"] = shape.high
    if shape.pattern:
        found["pattern"] = whole(shape.pattern)
    # Required text has at least one character, and never a null.
    if not is_nullable and shape.form in (Form.TEXT, Form.AMOUNT):
        found["minLength"] = 1
    if shape.default is not None:
        default = shape.default
        found["default"] = list(default) if isinstance(default, tuple) else default
    return found


def _kind_of_value(shape: Shape, *, is_nullable: bool) -> JsonObject:
    """Write ``type``, or the words that a value may be."""
    null = ["null"] if is_nullable else []
    match shape.form:
        case Form.CHOICE if shape.by_name:
            types = ["string", *null]
        case Form.CHOICE if shape.any_case:
            return {"type": "string", "pattern": any_case(shape.choices)}
        case Form.CHOICE:
            off = [False] if _OFF in shape.choices else []
            return {"enum": [*shape.choices, *off, *([None] if is_nullable else [])]}
        case Form.RAW:
            types = [*(_RAW[one] for one in shape.types), *null]
        case form:
            types = [*_TYPES[form], *(null if _TYPES[form] else [])]
    if not types:
        return {}
    return {"type": types if len(types) > 1 else types[0]}


def _parts(shape: Shape, at: tuple[str, str]) -> JsonObject:
    kind, path = at
    match shape.form:
        case Form.MAPPING:
            return _mapping(shape, at)
        case Form.OPEN_MAPPING if shape.items:
            below = (kind, f"{path}.{ANY}")
            return {
                "additionalProperties": _value(shape.items, below, is_nullable=True)
            }
        case Form.LIST if shape.items:
            # An empty item is a mapping without keys, and no text or number.
            is_nullable = shape.items.form is Form.MAPPING and not shape.items.required
            below = (kind, f"{path}[]")
            return {"items": _value(shape.items, below, is_nullable=is_nullable)}
        case _:
            return {}


def _mapping(shape: Shape, at: tuple[str, str]) -> JsonObject:
    kind, path = at
    keys = {
        key: _value(
            one,
            (kind, f"{path}.{key}" if path else key),
            is_nullable=key not in shape.required,
        )
        for key, one in shape.keys.items()
    }
    found: JsonObject = {"properties": keys}
    if shape.any_case:
        # Which key stands for a required one is left to the reader.
        found["patternProperties"] = {any_case([key]): keys[key] for key in keys}
    elif shape.required:
        found["required"] = list(shape.required)
    found["additionalProperties"] = False
    return found
