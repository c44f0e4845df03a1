"""What readers accept is valid by the schemas; mistakes in keys and types are not.

The readers are the oracle. What a schema cannot know of a document, such as names that
are defined elsewhere in it, is listed here, in `left_to_the_reader`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.config import API_VERSION, BadSetting, BadSyntax
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.policies import read_config
from nri_resmgr.schema import (
    Form,
    Shape,
    custom_resources,
    json_schema,
    shape_of,
)
from nri_resmgr.schema.samples import FULL, LEAST
from tests.examples import examples

ROOT: Final = Path(__file__).parents[2]

# How readers begin sentences about keys, types, words and ranges.
_RANGE: Final = r"expected -?\d+ to "
_STRUCTURAL: Final = re.compile(
    r"unknown key|unknown value|missing, expected"
    r"|expected (a mapping|a list|text, not|true or false|a number, not)"
    rf"|{_RANGE}"
)

UNKNOWN: Final = "xyz"

WRONG: Final[tuple[Any, ...]] = (
    True,
    False,
    7,
    -1,
    1.5,
    "",
    "example",
    "off",
    [],
    {},
    ["x"],
    [7],
    [{}],
    {UNKNOWN: 1},
    None,
)


@cache
def editor(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(kind))


@cache
def cluster(kind: str) -> jsonschema.Draft202012Validator:
    """Return what an API server checks that rejects unknown keys, as kubectl asks."""
    (version,) = custom_resources()[kind]["spec"]["versions"]
    return jsonschema.Draft202012Validator(strict(version["schema"]["openAPIV3Schema"]))


def strict(schema: Any) -> Any:
    """Return a structural schema under which unknown keys are mistakes."""
    if not isinstance(schema, dict):
        return schema
    found = {
        key: (
            {name: strict(one) for name, one in value.items()}
            if key == "properties"
            else strict(value)
        )
        for key, value in schema.items()
    }
    is_open = "x-kubernetes-preserve-unknown-fields" in schema
    if "properties" in schema and not is_open:
        found["additionalProperties"] = False
    if schema.get("format") == "int64":
        found.setdefault("maximum", (1 << 63) - 1)
    return found


def without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: without_nulls(one) for key, one in value.items() if one is not None
            }
        case list():
            return [without_nulls(one) for one in value]
        case _:
            return value


def document(kind: str, spec: object) -> dict[str, object]:
    return {"apiVersion": API_VERSION, "kind": kind, "spec": spec}


def verdict(found: object) -> BadSetting | None:
    try:
        read_config(found)
    except BadSetting as error:
        return error
    return None


def documents() -> Iterator[tuple[str, Any]]:
    """Yield the documents of the repository that readers accept."""
    paths = [
        *(ROOT / "conf.d").glob("*.conf"),
        *(ROOT / "tests/config/nri_plugins").iterdir(),
        *(ROOT / "tests/fuzz/corpus/documents").iterdir(),
        *(ROOT / "deploy/kubernetes").rglob("*.yaml"),
    ]
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(paths)]
    for page in sorted((ROOT / "docs").glob("*.md")):
        blocks = re.findall(
            r"(?ms)^```yaml\n(apiVersion: config\.nri.*?)^```", page.read_text()
        )
        texts += [(f"{page.name}-{place}", one) for place, one in enumerate(blocks)]
    for name, text in texts:
        try:
            found = parse_yaml(text)
        except BadSyntax:
            continue
        if isinstance(found, dict) and verdict(found) is None:
            yield name, found


DOCUMENTS: Final = list(documents())


def test_there_are_documents_of_all_kinds() -> None:
    assert {found["kind"] for _, found in DOCUMENTS} >= FULL.keys()


@pytest.mark.parametrize("found", [pytest.param(d, id=name) for name, d in DOCUMENTS])
def test_a_document_that_is_read_is_valid(found: Any) -> None:
    kind = found["kind"]

    assert list(editor(kind).iter_errors(found)) == []
    assert list(cluster(kind).iter_errors(without_nulls(found))) == []


def places(
    value: Any, shape: Shape, at: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Shape]]:
    """Yield all places of a document and those where an option could be."""
    yield at, shape
    match shape.form, value:
        case Form.MAPPING, dict():
            for key, one in shape.keys.items():
                yield from places(value.get(key), one, (*at, key))
        case (Form.OPEN_MAPPING, dict()) if shape.items:
            for key, one in value.items():
                yield from places(one, shape.items, (*at, key))
        case (Form.LIST, list()) if shape.items:
            for place, one in enumerate(value):
                yield from places(one, shape.items, (*at, place))


def changed(spec: Any, at: tuple[Any, ...], value: object) -> Any:
    """Return a spec with a value at one place."""
    if not at:
        return value
    found = copy.deepcopy(spec)
    holder = found
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = value
    return found


class Mutant(msgspec.Struct, frozen=True):
    """A document with a change in one place.

    Attributes:
        at: The keys of the place, below ``spec``.
        value: What is there.
        is_required: Whether each such mapping has to have this key.
    """

    kind: str
    spec: Any
    at: tuple[Any, ...]
    value: Any
    shape: Shape
    is_required: bool


@cache
def changeable(kind: str) -> list[tuple[Any, tuple[Any, ...], Shape, bool]]:
    """Return each place of the samples, with its shape."""
    found = []
    for spec in (dict(FULL[kind]), dict(LEAST)):
        shapes = dict(places(spec, shape_of(kind)))
        for at, shape in shapes.items():
            holder = shapes[at[:-1]]
            needed = not holder.any_case and at[-1:] != () and at[-1] in holder.required
            found.append((spec, at, shape, needed))
    return found


TEXTS: Final = ("a", "example", "1", "1-2", "cpuset:1", "30s", "50%", "Exists", "min")


SIMPLE: Final[Mapping[Form, st.SearchStrategy[Any]]] = {
    Form.FLAG: st.booleans(),
    Form.FRACTION: st.floats(0, 1) | st.integers(0, 1),
    Form.AMOUNT: st.sampled_from(TEXTS) | st.integers(0, 4),
    Form.RAW: st.sampled_from(TEXTS) | st.integers(0, 4),
}


def fitting(shape: Shape) -> st.SearchStrategy[Any]:
    """Draw values as the shape has them, many of which the reader accepts."""
    match shape.form:
        case Form.MAPPING:
            return fitting_mapping(shape)
        case Form.OPEN_MAPPING if shape.items:
            return st.dictionaries(
                st.sampled_from(["example", "burstable"]),
                fitting(shape.items),
                max_size=1,
            )
        case Form.LIST if shape.items:
            return st.lists(fitting(shape.items), max_size=2)
        case Form.CHOICE if not shape.by_name:
            return st.sampled_from(shape.choices)
        case Form.NUMBER:
            return st.integers(shape.low, shape.high)
        case form:
            return SIMPLE.get(form, st.sampled_from(TEXTS))


@st.composite
def fitting_mapping(draw: st.DrawFn, shape: Shape) -> dict[str, Any]:
    # Few keys: many options exclude others.
    others = st.lists(st.sampled_from(list(shape.keys)), max_size=2)
    keys = dict.fromkeys((*shape.required, *draw(others)))
    return {key: draw(fitting(shape.keys[key])) for key in keys}


@st.composite
def mutants(draw: st.DrawFn) -> Mutant:
    kind = draw(st.sampled_from(sorted(FULL)))
    spec, at, shape, is_required = draw(st.sampled_from(changeable(kind)))
    words = shape.choices if not shape.by_name else ()
    limits = [one for one in (shape.low, shape.high) if one is not None]
    numbers = [one + step for one in limits for step in (-1, 0, 1)]
    wrong = st.sampled_from([*WRONG, *words, *numbers])
    value = draw(wrong | fitting(shape))
    mutant = changed(spec, at, copy.deepcopy(value))
    return Mutant(kind, mutant, at, value, shape, is_required)


@examples(5)
@given(mutants())
def test_schemas_agree_with_the_reader(mutant: Mutant) -> None:
    found = document(mutant.kind, mutant.spec)
    stored = without_nulls(found)
    error = verdict(found)

    if error is None:
        assert list(editor(mutant.kind).iter_errors(found)) == []
        if not is_written_differently(mutant):
            assert list(cluster(mutant.kind).iter_errors(stored)) == []
    elif _STRUCTURAL.match(error.why) and not left_to_the_reader(error, mutant):
        assert not editor(mutant.kind).is_valid(found), str(error)
        assert not cluster(mutant.kind).is_valid(stored), str(error)


def is_written_differently(mutant: Mutant) -> bool:
    """Return whether a valid value is none in a cluster: docs/configuration.md."""
    is_off = mutant.value is False and "off" in mutant.shape.choices
    is_amount = mutant.shape.form is Form.AMOUNT
    is_empty_item = (
        mutant.value is None and bool(mutant.at) and type(mutant.at[-1]) is int
    )
    return is_off or (is_amount and isinstance(mutant.value, float)) or is_empty_item


def left_to_the_reader(error: BadSetting, mutant: Mutant) -> bool:
    """Return whether a mistake is one that no schema of ours can state."""
    # Of several types, of any letter case, or a name that the document defines.
    shape = mutant.shape
    if shape.form in (Form.RAW, Form.OPEN_MAPPING) or shape.any_case or shape.by_name:
        return True
    if error.why.startswith("unknown value") and not shape.choices:
        return True
    # Of what a text means.
    if shape.form is Form.AMOUNT and re.match(_RANGE, error.why):
        return True
    # Of a number that only some documents may have there.
    low, high = shape.low, shape.high
    if low is not None and high is not None and type(mutant.value) is int:
        return low <= mutant.value <= high
    # Of a key that only some documents need, or in any letter case.
    if error.why.startswith("missing") and not mutant.is_required:
        return True
    keys = mutant.at
    path = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in keys)
    # A condition between keys, which is reported at another one or further below.
    return error.path not in (f"$.spec{path}", f"$.spec{path}.{UNKNOWN}")
