"""What the kernel's list and mask formats mean, example by example."""

from __future__ import annotations

import pytest

from nri_resmgr.values import BadListFormat, BadMask, CpuSet


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("", "", id="no text is the empty set"),
        pytest.param("\n", "", id="a blank line is the empty set"),
        pytest.param("0-3,8,10-11\n", "0-3,8,10-11", id="a file with its newline"),
        pytest.param("4,0-2,3", "0-4", id="touching ranges are joined"),
        pytest.param("5,5,5-5", "5", id="repeats are harmless"),
        pytest.param("0-3, 8", "0-3,8", id="blanks separate as commas do"),
        pytest.param("1,,2,", "1-2", id="empty regions are skipped"),
        pytest.param("0-31:2/8", "0-1,8-9,16-17,24-25", id="two of every eight"),
        pytest.param("0-6:2/4", "0-1,4-5", id="the last group is cut"),
        pytest.param("0-4:2/4", "0-1,4", id="the last group is cut inside"),
        pytest.param("0-7:0/4", "", id="none of every four"),
        pytest.param("007", "7", id="leading zeros"),
        pytest.param("65535", "65535", id="the largest id"),
    ],
)
def test_parse(text: str, canonical: str) -> None:
    assert str(CpuSet.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("0,3-1", "3-1", id="a range backwards"),
        pytest.param("5-0", "5-0", id="a range back to nothing"),
        pytest.param("1,-2", "-2", id="a negative id"),
        pytest.param("0-", "0-", id="a range without end"),
        pytest.param("all", "all", id="words need a machine to mean something"),
        pytest.param("5:1/2", "5:1/2", id="a group needs a range"),
        pytest.param("0-7:1/0", "0-7:1/0", id="a group of nothing"),
        pytest.param("0-7:5/4", "0-7:5/4", id="more used than the group has"),
        pytest.param("65536", "65536", id="an id beyond every kernel"),
        pytest.param("0-9999999", "0-9999999", id="a range that would eat memory"),
        pytest.param("\u0663", "\u0663", id="digits of other scripts"),
    ],
)
def test_parse_refuses(text: str, at: str) -> None:
    with pytest.raises(BadListFormat) as caught:
        CpuSet.parse(text)

    assert (caught.value.text, caught.value.at) == (text, at)
    assert str(caught.value) == f"not a CPU or node list: {text!r} (at {at!r})"


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        pytest.param("0\n", "", id="nothing"),
        pytest.param("00000001,00000000", "32", id="most significant word first"),
        pytest.param("1,0", "32", id="words may lack leading zeros"),
        pytest.param("ffffffff,00000001", "0,32-63", id="a full word"),
        pytest.param("F0", "4-7", id="capital digits"),
    ],
)
def test_from_mask(text: str, listed: str) -> None:
    assert str(CpuSet.from_mask(text)) == listed


@pytest.mark.parametrize("text", ["", "0x1", "123456789", "1,,2", "g", "-1"])
def test_from_mask_refuses(text: str) -> None:
    with pytest.raises(BadMask):
        CpuSet.from_mask(text)


@pytest.mark.parametrize(
    ("listed", "mask"),
    [("", "00000000"), ("0-31", "ffffffff"), ("32", "00000001,00000000")],
)
def test_mask(listed: str, mask: str) -> None:
    assert CpuSet.parse(listed).mask() == mask


def test_the_first_of_an_empty_set_is_a_bug_of_the_caller() -> None:
    assert CpuSet.of(70, 9).first == 9
    with pytest.raises(ValueError, match="no lowest id"):
        _ = CpuSet().first
