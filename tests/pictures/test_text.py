"""Texts are folded without a loss, and escaped for XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.pictures.text import columns_of, escaped, folded
from nri_resmgr.values.printable import printable

TEXTS = st.text(st.sampled_from("ab c<&\"'\n\x1b\u202e\ufffe\u4e2d-"))


@given(TEXTS, st.integers(2, 12))
def test_lines_are_the_text_and_none_is_too_long(words: str, columns: int) -> None:
    lines = folded(words, columns)

    assert "".join(lines) == printable(words)
    assert all(columns_of(line.rstrip(" ")) <= columns for line in lines)


@given(TEXTS | st.text(st.characters()))
def test_any_text_is_text_in_xml(words: str) -> None:
    root = ET.fromstring(f"<a>{escaped(words)}</a>")  # noqa: S314 - our own text

    assert (root.text or "") == printable(words)
    assert len(root) == 0
