"""Configurations of plugins as typed classes: what is read, and how mistakes sound."""

from __future__ import annotations

import enum
import re
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.sdk.settings import BadSetting, BadSyntax, InvalidField, Settings


class Colour(enum.Enum):
    """A choice."""

    RED = "red"
    DARK_BLUE = "dark-blue"


class Pool(Settings, frozen=True):
    """A part of a document."""

    cpus: int
    kind: Literal["shared", "exclusive"] = "shared"


class Plugin(Settings, frozen=True):
    """A document with keys of every kind."""

    log_file: str = ""
    names: tuple[str, ...] = ("*",)
    pools: tuple[Pool, ...] = ()
    by_space: dict[str, Pool] = msgspec.field(default_factory=dict)
    pairs: tuple[str, int] | None = None
    colour: Colour = Colour.RED
    weight: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    share: float = 1.0
    limit: int | None = None
    enabled: bool = False
    text_or_list: str | list[str] = ""
    prefix: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", max_length=5)] = "a"

    def __post_init__(self) -> None:
        if self.weight > 5 and not self.enabled:
            raise InvalidField("weight", "expected at most 5 if not enabled")


def test_a_document_becomes_the_class_of_its_author() -> None:
    text = """
logFile: /var/log/x
names: [a, b]
pools: [{cpus: 2}, {cpus: 4, kind: exclusive}]
bySpace: {shop: {cpus: 1}}
pairs: [a, 1]
colour: dark-blue
weight: 9
share: 0.5
limit: 7
enabled: true
textOrList: [x]
prefix: abc
"""

    assert Plugin.read(text) == Plugin(
        log_file="/var/log/x",
        names=("a", "b"),
        pools=(Pool(2), Pool(4, "exclusive")),
        by_space={"shop": Pool(1)},
        pairs=("a", 1),
        colour=Colour.DARK_BLUE,
        weight=9,
        share=0.5,
        limit=7,
        enabled=True,
        text_or_list=["x"],
        prefix="abc",
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="no text"),
        pytest.param("# nothing\n", id="a comment"),
        pytest.param("{}", id="no keys"),
        pytest.param("names:\nlimit: ~\npools: null", id="keys without a value"),
    ],
)
def test_what_is_left_out_has_its_default(text: str) -> None:
    assert Plugin.read(text) == Plugin()


def test_what_is_left_out_has_the_value_of_the_base() -> None:
    base = Plugin(log_file="/a", pools=(Pool(3),), colour=Colour.DARK_BLUE)

    found = Plugin.read("names: [x]\nlogFile:\npools: [{cpus: 1}]", base)

    assert found == Plugin("/a", ("x",), (Pool(1),), colour=Colour.DARK_BLUE)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("logFil: x", "$.logFil: unknown key, did you mean logFile?"),
        ("log_file: x", "$.log_file: unknown key, did you mean logFile?"),
        (
            "pools: [{cpus: 1, x: 2}]",
            "$.pools[0].x: unknown key, expected cpus or kind",
        ),
        ("pools: [{cpus: 1}, {}]", "$.pools[1].cpus: missing"),
        ("pools: [{cpus: }]", "$.pools[0].cpus: missing"),
        ("logFile: 1", "$.logFile: expected text, not 1"),
        ("names: x", "$.names: expected a list, not 'x'"),
        ("names: [a, {}]", "$.names[1]: expected text, not a mapping"),
        ("pools: [{cpus: '1'}]", "$.pools[0].cpus: expected a whole number, not '1'"),
        (
            "pools: [{cpus: 1, kind: share}]",
            "$.pools[0].kind: unknown value, did you mean shared?",
        ),
        (
            "bySpace: {a: {cpus: 1}, b: {cpus: 1, x: 1}}",
            "$.bySpace.b.x: unknown key, expected cpus or kind",
        ),
        (
            "bySpace: {a: {cpus: 1}, b: {cpus: x}, c: {cpus: x}}",
            "$.bySpace.b.cpus: expected a whole number, not 'x'",
        ),
        ("bySpace: {1: {cpus: 1}}", "$.bySpace: expected text for each key"),
        ("pairs: [a, b]", "$.pairs[1]: expected a whole number, not 'b'"),
        ("colour: dark-blu", "$.colour: unknown value, did you mean dark-blue?"),
        ("weight: 0", "$.weight: expected a whole number >= 1, not 0"),
        ("weight: 10", "$.weight: expected a whole number <= 9, not 10"),
        ("weight: true", "$.weight: expected a whole number, not True"),
        ("weight: 6", "$.weight: expected at most 5 if not enabled"),
        ("share: x", "$.share: expected a number, not 'x'"),
        ("limit: x", "$.limit: expected a whole number, not 'x'"),
        ("enabled: 1", "$.enabled: expected true or false, not 1"),
        ("textOrList: {}", "$.textOrList: expected text or a list, not a mapping"),
        ("prefix: A", "$.prefix: expected text matching regex '^[a-z]+$', not 'A'"),
        ("prefix: abcdef", "$.prefix: expected text of length <= 5, not 'abcdef'"),
        ("[x]", "$: expected a mapping, not a list"),
        ("5", "$: expected a mapping, not 5"),
        ("1: x", "$: expected text for each key"),
    ],
)
def test_a_mistake_has_its_path(text: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as mistake:
        Plugin.read(text)

    assert str(mistake.value) == sentence


class Outer(Settings, frozen=True):
    """A document with others inside."""

    plugins: dict[str, tuple[Plugin, ...]]


def test_a_check_of_the_author_has_the_path_of_its_part() -> None:
    with pytest.raises(BadSetting) as mistake:
        Outer.read("plugins: {a: [{weight: 2}], b.c: [{weight: 5}, {weight: 6}]}")

    assert str(mistake.value) == (
        "$.plugins.b.c[1].weight: expected at most 5 if not enabled"
    )


def test_text_that_is_not_yaml_has_its_line() -> None:
    with pytest.raises(BadSyntax) as mistake:
        Plugin.read("names: [a]\nnames: [b]")

    assert str(mistake.value) == "line 2: duplicate key 'names'"


class Pairs(Settings, frozen=True):
    """A document with a mapping that has at least two keys."""

    pools: Annotated[dict[str, Pool], msgspec.Meta(min_length=2)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: {cpus: x}, b: {cpus: 1}", "$.pools[...].cpus: expected a whole number"),
        ("a: {cpus: 1, x: 1}, b: {cpus: 1}", "$.pools[...].x: unknown key, "),
        ("a: {cpus: 1, kind: x}, b: {cpus: 1}", "$.pools[...].kind: Invalid enum"),
        ("a: {cpus: 1}", "$.pools: expected a mapping of length >= 2, not a mapping"),
    ],
)
def test_a_key_that_cannot_be_found_is_left_out(text: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as mistake:
        Pairs.read(f"pools: {{{text}}}")

    assert str(mistake.value).startswith(sentence)


# Values as YAML has them, of every shape that a key may get.
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.sampled_from(["", "x", "red", "shared", "a"])
)
KEYS = st.sampled_from([*Plugin.__struct_encode_fields__, "cpus", "kind", "nope"])
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.just(1), inner)
    ),
    max_leaves=12,
)


def mistake_of(document: dict[str, object]) -> BadSetting | None:
    try:
        Plugin.of(document)
    except BadSetting as mistake:
        return mistake
    return None


@given(st.dictionaries(KEYS, DOCUMENTS))
def test_the_path_of_a_mistake_leads_to_a_part_of_the_document(
    document: dict[str, object],
) -> None:
    mistake = mistake_of(document)
    if mistake is None:
        return
    key = re.split(r"[.\[]", mistake.path.removeprefix("$."))[0]
    rest = {name: value for name, value in document.items() if name != key}
    after = mistake_of(rest)

    assert key in document
    assert "`" not in mistake.why
    assert after is None or after.path != mistake.path
