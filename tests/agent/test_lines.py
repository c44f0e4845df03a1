"""Lines do not depend on where a stream is cut."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.agent.api.lines import Lines, LineTooLong


@given(
    stream=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b" \r\n"])),
    cuts=st.lists(st.integers(0, 60)),
)
def test_lines_do_not_depend_on_pieces(stream: list[bytes], cuts: list[int]) -> None:
    text = b"".join(stream)
    ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    lines = Lines(1000)

    found = [
        line for begin, end in pairwise(ends) for line in lines.feed(text[begin:end])
    ]

    whole = text[: text.rfind(b"\n") + 1]
    assert found == [line for line in whole.split(b"\n") if line.strip()]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_line_has_a_bound(size: int) -> None:
    lines = Lines(10)
    text = b"ok\n" + b"1234567890\n" + b"12345678901"
    found: list[bytes] = []

    def feed() -> None:
        for begin in range(0, len(text), size):
            found.extend(lines.feed(text[begin : begin + size]))

    with pytest.raises(LineTooLong):
        feed()

    assert found == [b"ok", b"1234567890"]
