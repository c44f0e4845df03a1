"""JSON in manifests means what the parser of YAML finds in it."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.config.errors import BadSyntax
from nri_resmgr.config.syntax import MAX_TEXT
from nri_resmgr.scenario.documents import documents_in

# Those that YAML has as they are, and JSON as well.
TEXTS = st.text(st.characters(codec="utf-8", min_codepoint=0x20, max_codepoint=0x7E))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@given(st.dictionaries(TEXTS, VALUES), st.sampled_from([None, 2, 4]))
def test_json_is_read_as_yaml_is(document: dict[str, object], indent: int) -> None:
    text = json.dumps(document, indent=indent)

    assert documents_in(text) == [document]
    assert yaml.safe_load(text) == document


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('{"a": 1, "a": 2}', "duplicate key 'a'", id="a key twice"),
        pytest.param('{"a": "\\ud800"}', "line 1", id="half a character"),
        pytest.param('{"a": ' * 70 + "1" + "}" * 70, "levels deep", id="deep"),
        pytest.param('{"a": ' * 9999 + "1" + "}" * 9999, "levels deep", id="deeper"),
        pytest.param('{"a": ' + "9" * 9999 + "}", "invalid value", id="long number"),
        pytest.param('{"a": 1', "did not find", id="cut off"),
    ],
)
def test_what_is_wrong_in_yaml_is_wrong_in_json(text: str, why: str) -> None:
    with pytest.raises(BadSyntax, match=why):
        documents_in(text)


def test_yaml_in_braces_is_yaml() -> None:
    assert documents_in("{a: 1}\n---\n---\n{b: NaN}") == [{"a": 1}, {"b": "NaN"}]
    assert documents_in('{"a": NaN}') == [{"a": "NaN"}]


def test_json_may_be_longer_than_yaml() -> None:
    text = json.dumps({"a": "x" * MAX_TEXT})

    assert documents_in(text) == [{"a": "x" * MAX_TEXT}]
    with pytest.raises(BadSyntax, match="expected at most"):
        documents_in(text.replace('"a"', "a"))
