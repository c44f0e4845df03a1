"""Writes shapes as custom resource definitions of Kubernetes, with structural schemas.

What such a schema cannot state is left to the daemon: two types of one key (but a whole
number or text), keys in any letter case, and conditions between keys. There are no
defaults in it, only in the texts: an API server that fills in a new option would have
daemons of the version before, which do not know it, reject every document; and some
options exclude each other even with their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from nri_resmgr.config import API_VERSION
from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.schema.adjustments import ADJUSTMENT
from nri_resmgr.schema.conditions import CONDITIONS, EMPTY_TEXT
from nri_resmgr.schema.meanings import meaning_of, plain
from nri_resmgr.schema.node_status import NODE_RESOURCE_MANAGER
from nri_resmgr.schema.of_kind import shape_of
from nri_resmgr.schema.patterns import any_case, whole
from nri_resmgr.schema.shape import ANY, Default, Form, Shape
from nri_resmgr.values.documents import JsonObject

_GROUP, _, _VERSION = API_VERSION.partition("/")

_INT_OR_TEXT: Final[JsonObject] = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
}
_ANYTHING: Final[JsonObject] = {"x-kubernetes-preserve-unknown-fields": True}

_TYPES: Final[Mapping[Form, str]] = {
    Form.MAPPING: "object",
    Form.OPEN_MAPPING: "object",
    Form.LIST: "array",
    Form.TEXT: "string",
    Form.FLAG: "boolean",
    Form.FRACTION: "number",
}

# Larger ones are no whole numbers in JSON, where the API server compares floats.
_LARGEST: Final = 1 << 53
_LARGEST_INT32: Final = (1 << 31) - 1

_STATUS: Final[JsonObject] = {
    "type": "object",
    "description": "What the nodes that use the document say of it.",
    "properties": {
        "nodes": {
            "type": "object",
            "description": "By node; of an object for many nodes, of the first ones.",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "status": {
                        "type": "string",
                        "description": "Success or Failure.",
                        "enum": ["Success", "Failure"],
                    },
                    "generation": {
                        "type": "integer",
                        "format": "int64",
                        "description": "The generation that the node has seen.",
                    },
                    "errors": {
                        "type": "string",
                        **EMPTY_TEXT,
                        "description": "Why the node does not use it.",
                    },
                    "timestamp": {
                        "type": "string",
                        "format": "date-time",
                        "description": "When the node decided.",
                    },
                },
            },
        },
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "description": "The generation that status and conditions are about.",
        },
        "conditions": CONDITIONS,
    },
}
_COLUMNS: Final = (
    {
        "name": "Generation",
        "type": "integer",
        "description": "Number of the present content",
        "jsonPath": ".metadata.generation",
    },
    {
        "name": "Ready",
        "type": "string",
        "description": "Whether the node uses it; of an object for one node",
        "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
    },
    {
        "name": "Observed",
        "type": "integer",
        "description": "The generation that this is about",
        "jsonPath": ".status.observedGeneration",
    },
    {
        "name": "Message",
        "type": "string",
        "description": "Why it is not used",
        "jsonPath": '.status.conditions[?(@.type=="Ready")].message',
        "priority": 1,
    },
    {
        "name": "Nodes",
        "type": "string",
        "description": "What single nodes say of it",
        "jsonPath": ".status.nodes",
        "priority": 1,
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


def custom_resources() -> Mapping[str, JsonObject]:
    """Return all definitions by kind: policies, then the resources of ours for status.

    Those of policies have nri-plugins' names and versions, so they may replace its own.
    """
    found = {kind: _policy(kind) for kind in sorted(BUILT_IN)}
    return {
        **found,
        "NodeResourceManager": NODE_RESOURCE_MANAGER,
        "Adjustment": ADJUSTMENT,
    }


def _policy(kind: str) -> JsonObject:
    plural = f"{kind.removesuffix('y').lower()}ies"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [kind.removesuffix("Policy").lower()],
                "categories": ["nri"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": _VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": list(_COLUMNS),
                    "schema": {"openAPIV3Schema": _object(kind)},
                }
            ],
        },
    }


def _object(kind: str) -> JsonObject:
    return {
        "type": "object",
        "description": f"A configuration of nri-resmgr, kind {kind}. Its name says for "
        "which nodes it is: node.NAME for one, group.NAME for those with the label "
        "config.nri/group: NAME, default for all others.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _value(shape_of(kind), (kind, "")),
            "status": _STATUS,
        },
    }


def _value(shape: Shape, at: tuple[str, str], *, required: bool = False) -> JsonObject:
    """Write a value; *at* is the kind and the path below ``spec``."""
    found: JsonObject = {}
    texts = (plain(meaning_of(*at)), _default(shape.default))
    if text := " ".join(filter(None, texts)):
        found["description"] = text
    found |= _kind_of_value(shape)
    found |= _parts(shape, at)
    if shape.low is not None:
        found["minimum"] = shape.low
    if shape.high is not None and shape.high <= _LARGEST:
        found["maximum"] = shape.high
    if shape.pattern:
        found["pattern"] = whole(shape.pattern)
    if required and shape.form in (Form.TEXT, Form.AMOUNT):
        found["minLength"] = 1
    return found


def _default(default: Default) -> str:
    if default is None or default == ():
        return ""
    value = list(default) if isinstance(default, tuple) else default
    return f"Default: {value if isinstance(value, str) else json.dumps(value)}."


def _kind_of_value(shape: Shape) -> JsonObject:
    form = shape.form
    if form is Form.CHOICE:
        return _words(shape)
    if form is Form.AMOUNT or set(shape.types) == {str, int}:
        return _INT_OR_TEXT
    if form is Form.MAPPING and shape.any_case:
        return {"type": "object", **_ANYTHING}
    if form is Form.NUMBER:
        is_long = shape.high is not None and shape.high > _LARGEST_INT32
        return {"type": "integer", "format": "int64" if is_long else "int32"}
    return {"type": _TYPES[form]} if form in _TYPES else _ANYTHING


def _words(shape: Shape) -> JsonObject:
    found: JsonObject = {"type": "string"}
    if shape.any_case:
        found["pattern"] = any_case(shape.choices)
    elif not shape.by_name:
        found["enum"] = list(shape.choices)
    return found


def _parts(shape: Shape, at: tuple[str, str]) -> JsonObject:
    kind, path = at
    match shape.form:
        case Form.MAPPING:
            found: JsonObject = {
                "properties": {
                    key: _value(
                        one,
                        (kind, f"{path}.{key}" if path else key),
                        required=key in shape.required and not shape.any_case,
                    )
                    for key, one in shape.keys.items()
                }
            }
            # In another letter case a required key is none of these properties.
            if shape.required and not shape.any_case:
                found["required"] = list(shape.required)
            return found
        case Form.OPEN_MAPPING if shape.items:
            below = (kind, f"{path}.{ANY}")
            return {"additionalProperties": _value(shape.items, below)}
        case Form.LIST if shape.items:
            return {"items": _value(shape.items, (kind, f"{path}[]"))}
        case _:
            return {}
