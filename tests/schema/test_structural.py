"""The definitions keep the rules that an API server has for structural schemas.

Source:
    Kubernetes, ``apiextensions-apiserver/pkg/apiserver/schema/validation.go``, and the
    page "Custom Resource Definitions".
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

import kubernetes_validate
import pytest

from nri_resmgr.schema import custom_resources

CRDS: Final = custom_resources()

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_KNOWN: Final = {
    "type",
    "format",
    "description",
    "properties",
    "additionalProperties",
    "items",
    "required",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "nullable",
    "anyOf",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
}
# Go's regular expressions have none of these, nor has JavaScript the last one.
_LACKING: Final = re.compile(r"\(\?[=!<P]|\\[1-9ZA]")


def violations(schema: dict[str, Any], at: str = "") -> Iterator[str]:
    """Yield what an API server would reject."""
    if unknown := schema.keys() - _KNOWN:
        yield f"{at}: {unknown} are not allowed"
    yield from _of_type(schema, at)
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{at}: additionalProperties beside properties"
    if schema.get("required", ()) and not set(schema["required"]) <= set(
        schema.get("properties", {})
    ):
        yield f"{at}: requires what is no property"
    pattern = schema.get("pattern", "")
    if _LACKING.search(pattern):
        yield f"{at}: a pattern of Python"
    if schema.get("minimum", 0) > schema.get("maximum", schema.get("minimum", 0)):
        yield f"{at}: no number is possible"
    if schema.get("x-kubernetes-list-type") == "map":
        keys = schema.get("x-kubernetes-list-map-keys", [])
        if not keys or not set(keys) <= set(schema["items"].get("required", ())):
            yield f"{at}: keys of a list have to be required"
    for name, one in _parts(schema):
        yield from violations(one, f"{at}.{name}")


def _of_type(schema: dict[str, Any], at: str) -> Iterator[str]:
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        either = [{"type": "integer"}, {"type": "string"}]
        if kind is not None or schema.get("anyOf", either) != either:
            yield f"{at}: a number or text has no other type"
    elif "anyOf" in schema:
        yield f"{at}: alternatives"
    elif kind is None:
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{at}: no type"
    elif kind not in _TYPES:
        yield f"{at}: {kind} is no type"
    if kind == "array" and "items" not in schema:
        yield f"{at}: a list of what?"


def _parts(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from schema.get("properties", {}).items()
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield "*", values
    if "items" in schema:
        yield "[]", schema["items"]


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    (version,) = crd["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize("kind", CRDS)
def test_a_definition_is_structural(kind: str) -> None:
    assert list(violations(schema_of(CRDS[kind]))) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"type": None}, ".spec: no type"),
        ({"$ref": "#/x"}, ".spec: {'$ref'} are not allowed"),
        ({"default": {}}, ".spec: {'default'} are not allowed"),
        (
            {"additionalProperties": False},
            ".spec: additionalProperties beside properties",
        ),
        ({"required": ["x"]}, ".spec: requires what is no property"),
        ({"pattern": "(?P<a>x)"}, ".spec: a pattern of Python"),
    ],
)
def test_violations_of_structural_schemas_are_found(
    change: dict[str, Any], complaint: str
) -> None:
    schema = copy.deepcopy(schema_of(CRDS["NonePolicy"]))
    spec = {**schema["properties"]["spec"], **change}
    schema["properties"]["spec"] = {k: v for k, v in spec.items() if v is not None}

    assert list(violations(schema)) == [complaint]


@pytest.mark.parametrize("kind", CRDS)
def test_a_definition_is_an_object_of_kubernetes(kind: str) -> None:
    crd = CRDS[kind]

    for version in ("1.28", "1.37"):
        kubernetes_validate.validate(crd, version, strict=True)
    names = crd["spec"]["names"]
    assert crd["metadata"]["name"] == f"{names['plural']}.{crd['spec']['group']}"
    assert names["kind"] == kind


def test_names_are_those_of_nri_plugins_and_cri_rm() -> None:
    names = {kind: crd["metadata"]["name"] for kind, crd in CRDS.items()}

    assert names["TopologyAwarePolicy"] == "topologyawarepolicies.config.nri"
    assert names["BalloonsPolicy"] == "balloonspolicies.config.nri"
    assert names["Adjustment"] == "adjustments.criresmgr.intel.com"


def test_no_two_kinds_have_a_short_name() -> None:
    short = [
        name
        for crd in CRDS.values()
        for name in crd["spec"]["names"].get("shortNames", ())
    ]

    assert len(short) == len(set(short)) == len(CRDS) - 1  # CRI-RM's has none


def test_only_own_kinds_have_a_status_subresource() -> None:
    separate = {
        kind
        for kind, crd in CRDS.items()
        if "status" in crd["spec"]["versions"][0].get("subresources", {})
    }

    # CRI-RM's agents patch the object itself.
    assert separate == CRDS.keys() - {"Adjustment"}


@pytest.mark.parametrize("kind", CRDS)
def test_columns_show_fields_of_the_schema(kind: str) -> None:
    (version,) = CRDS[kind]["spec"]["versions"]
    for column in version.get("additionalPrinterColumns", ()):
        found = schema_of(CRDS[kind])
        for key in re.findall(r"\.(\w+)|\[\?", column["jsonPath"].split("==")[0]):
            if column["jsonPath"].startswith(".metadata"):
                break
            found = found["properties"][key] if key else found["items"]
            if found["type"] == "array":
                break
        assert found
