"""Laws of editing TOML: nothing changes but what was asked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nri_resmgr.runtimes.errors import NotEditable, NotToml
from nri_resmgr.runtimes.toml_edit import Value, with_values
from nri_resmgr.runtimes.toml_statements import statements
from tests.runtimes.toml_documents import NRI, toml_documents

KEYS = ("disable", "plugin_registration_timeout", "plugin_request_timeout")
PATH = "/etc/x.toml"


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Value]:
    values: dict[str, Value] = {"disable": draw(st.booleans())}
    for key in KEYS[1:]:
        if draw(st.booleans()):
            values[key] = draw(st.sampled_from(("2s", "5s", "10s")))
    return values


def read(text: str) -> dict[str, Any]:
    # Floats as their text: NaN equals nothing, not even itself.
    return tomllib.loads(text, parse_float=lambda digits: ("float", digits))


def set_in(document: dict[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    plugins = document.setdefault("plugins", {})
    plugins[NRI[1]] = {**plugins.get(NRI[1], {}), **values}
    return document


def lines_in_common(one: list[str], other: list[str]) -> int:
    """Count the lines of both that stand in the same order in each (LCS)."""
    best = [0] * (len(other) + 1)
    for line in one:
        row = [0]
        for n, there in enumerate(other):
            row.append(best[n] + 1 if line == there else max(best[n + 1], row[n]))
        best = row
    return best[-1]


@given(toml_documents(), settings())
def test_an_edit_sets_the_values_and_keeps_all_others(
    text: str, values: dict[str, Value]
) -> None:
    after = with_values(PATH, text, NRI, values)

    assert read(after) == set_in(read(text), values)


@given(toml_documents(), settings())
def test_twice_is_once(text: str, values: dict[str, Value]) -> None:
    once = with_values(PATH, text, NRI, values)

    assert with_values(PATH, once, NRI, values) == once


@given(toml_documents(), settings())
def test_all_other_lines_stay_unchanged(text: str, values: dict[str, Value]) -> None:
    after = with_values(PATH, text, NRI, values)
    old = read(text).get("plugins", {}).get(NRI[1], {})
    changed = [key for key in values if key in old]
    lines = text.splitlines()

    # A value of two lines is replaced as a whole.
    assert lines_in_common(lines, after.splitlines()) >= len(lines) - 2 * len(changed)
    assert after.count("#") == text.count("#")


@given(toml_documents(), settings())
def test_line_ends_are_those_of_the_document(
    text: str, values: dict[str, Value]
) -> None:
    after = with_values(PATH, text, NRI, values)
    lone = re.compile(r"(?<!\r)\n")

    assert bool(lone.search(after)) == bool(lone.search(text)) or "\n" not in text


@given(toml_documents())
def test_statements_are_whole_and_in_order(text: str) -> None:
    found = list(statements(text))
    pieces = [text[one.start : one.end] for one in found]
    keys = [one for one in found if not one.is_header]

    assert all(one.end <= other.start for one, other in pairwise(found))
    # A key's lines alone are a document, with the value that its span has.
    for one in keys:
        begin, end = one.value
        assert read(text[one.start : one.end]) == read(
            f"{text[one.parts[0][0] : one.parts[-1][1]]} = {text[begin:end]}"
        )
    assert read("".join(pieces)) == read(text)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param(
            "",
            '[plugins."io.containerd.nri.v1.nri"]\n  disable = false\n',
            id="an empty file",
        ),
        pytest.param(
            "version = 2",
            'version = 2\n\n[plugins."io.containerd.nri.v1.nri"]\n  disable = false\n',
            id="no newline at the end",
        ),
        pytest.param(
            "[plugins.'a']\r\n",
            "[plugins.'a']\r\n\r\n[plugins.'io.containerd.nri.v1.nri']\r\n"
            "  disable = false\r\n",
            id="single quotes and carriage returns",
        ),
        pytest.param(
            "[plugins]\n  [plugins.'io.containerd.nri.v1.nri'] # on?\n    # no\n"
            "    disable=true# sure\n[x]\n",
            "[plugins]\n  [plugins.'io.containerd.nri.v1.nri'] # on?\n    # no\n"
            "    disable=false# sure\n[x]\n",
            id="comments wherever they may stand",
        ),
        pytest.param(
            "[plugins.'io.containerd.nri.v1.nri']\n\n# next\n[x]\n",
            "[plugins.'io.containerd.nri.v1.nri']\n  disable = false\n\n# next\n[x]\n",
            id="an empty table before the comment of the next one",
        ),
        pytest.param(
            "plugins.'io.containerd.nri.v1.nri'.socket_path = 'x'\n[x]\n",
            "plugins.'io.containerd.nri.v1.nri'.socket_path = 'x'\n"
            "plugins.'io.containerd.nri.v1.nri'.disable = false\n[x]\n",
            id="a table that only its dotted keys name",
        ),
        pytest.param(
            "[plugins]\n 'io.containerd.nri.v1.nri' . socket_path = 'x'",
            "[plugins]\n 'io.containerd.nri.v1.nri' . socket_path = 'x'\n"
            " 'io.containerd.nri.v1.nri'.disable = false\n",
            id="the same below a header",
        ),
        pytest.param(
            "[plugins.'io.containerd.nri.v1.nri']\ndisable = '''\ntrue'''\n",
            "[plugins.'io.containerd.nri.v1.nri']\ndisable = false\n",
            id="a value of another type and of two lines",
        ),
        pytest.param(
            "[plugins.'io.containerd.nri.v1.nri']\ndisable = 0\n",
            "[plugins.'io.containerd.nri.v1.nri']\ndisable = false\n",
            id="zero is not false",
        ),
    ],
)
def test_where_the_key_goes(text: str, after: str) -> None:
    assert with_values(PATH, text, NRI, {"disable": False}) == after


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            "a = 1\nplugins = {}\n",
            "line 2 has the table as an inline value",
            id="everything inline",
        ),
        pytest.param(
            "[plugins]\n'io.containerd.nri.v1.nri' = { disable = true }\n",
            "line 2 has the table as an inline value",
            id="an inline table",
        ),
        pytest.param(
            "[[plugins]]\n", "plugins is not a table", id="an array of tables"
        ),
        pytest.param("plugins = 1\n", "plugins is not a table", id="a number"),
        pytest.param(
            "[plugins.'io.containerd.nri.v1.nri'.disable]\n",
            "the edit would change other values",
            id="a table where a value belongs",
        ),
    ],
)
def test_documents_that_are_not_safe_to_edit_are_refused(text: str, why: str) -> None:
    with pytest.raises(NotEditable) as refusal:
        with_values(PATH, text, NRI, {"disable": False})

    assert str(refusal.value) == f"{PATH}: {why}; edit it by hand"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a = \n", "invalid value (at line 1, column 5)", id="no value"),
        pytest.param(
            "[a]\n[a]\n",
            "cannot declare ('a',) twice (at line 2, column 3)",
            id="a table twice",
        ),
        pytest.param(
            "a = 1\na = 2\n",
            "cannot overwrite a value (at line 2, column 6)",
            id="a key twice",
        ),
        pytest.param("a = " + "[" * 5000, "it is nested too deep", id="a bomb"),
    ],
)
def test_invalid_toml_is_reported(text: str, why: str) -> None:
    with pytest.raises(NotToml) as refusal:
        with_values(PATH, text, NRI, {"disable": False})

    # Which column it is differs between releases of Python.
    assert refusal.value.why.partition(" (at")[0] == why.partition(" (at")[0]


@example("[plugins.'io.containerd.nri.v1.nri'\n", 1.0)
@example('a = """', 1.0)
@given(toml_documents(), st.floats(0, 1))
def test_a_cut_file_is_edited_or_refused_and_nothing_else(
    text: str, share: float
) -> None:
    try:
        after = with_values(
            PATH, text[: int(len(text) * share)], NRI, {"disable": False}
        )
    except (NotToml, NotEditable):
        return

    assert read(after)["plugins"][NRI[1]]["disable"] is False
