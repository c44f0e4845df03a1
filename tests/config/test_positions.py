"""Line and column of settings in the text of a document."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from nri_resmgr.config.positions import Position, Positions

TEXT = """\
kind: StaticPolicy
spec:
  pools:
  - cpu: 1
    name: a
  - {cpu: 2, name: b}
  namespaces: &all [kube-*,
    default]
  a.b: {c: 1}
  a:
    b: {d: 1}
  others: *all
"""


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ("$", (1, 1)),
        ("$.kind", (1, 1)),
        ("$.spec", (2, 1)),
        ("$.spec.pools", (3, 3)),
        ("$.spec.pools[0]", (4, 5)),
        ("$.spec.pools[0].name", (5, 5)),
        ("$.spec.pools[1].cpu", (6, 6)),
        ("$.spec.namespaces[1]", (8, 5)),
        # Keys with dots, and one that is the beginning of another.
        ("$.spec.a.b.c", (9, 9)),
        ("$.spec.a.b.d", (11, 9)),
        ("$.spec.pool", (2, 1)),
        # What is missing is reported where it should stand.
        ("$.spec.pools[1].maxPods", (6, 5)),
        ("$.spec.pools[2]", (3, 3)),
        ("$.metadata.name", (1, 1)),
        # References point to what they stand for.
        ("$.spec.others[0]", (7, 21)),
    ],
)
def test_settings_have_a_place(path: str, position: tuple[int, int]) -> None:
    assert Positions(TEXT).at(path) == Position(*position)


@pytest.mark.parametrize("text", ["", "a: [", "a: &b [*b]", "a: 1\n---\nb: 1\n"])
def test_invalid_texts_have_no_positions(text: str) -> None:
    assert Positions(text).at("$.a") == Position(0, 0)


KEYS = st.text("abc", min_size=1, max_size=3)
VALUES = st.recursive(
    st.integers(0, 9),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(KEYS, inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


@given(
    document=st.dictionaries(KEYS, VALUES, min_size=1),
    data=st.data(),
    flow=st.booleans(),
)
def test_the_text_at_the_place_is_that_of_the_setting(
    *, document: dict[str, object], data: st.DataObject, flow: bool
) -> None:
    text = yaml.safe_dump(document, default_flow_style=flow)
    value: object = document
    path, key = "$", ""
    while isinstance(value, dict | list) and (path == "$" or data.draw(st.booleans())):
        if isinstance(value, dict):
            key = data.draw(st.sampled_from(sorted(value)))
            path, value = f"{path}.{key}", value[key]
        else:
            index = data.draw(st.integers(0, len(value) - 1))
            path, value, key = f"{path}[{index}]", value[index], ""
    found = Positions(text).at(path)
    rest = text.splitlines()[found.line - 1][found.column - 1 :]

    if key:
        assert rest.startswith(f"{key}:")
    else:
        assert rest[0] == yaml.safe_dump(value, default_flow_style=flow)[0]
