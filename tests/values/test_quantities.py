"""Kubernetes quantities in exact arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.values import (
    BadQuantity,
    Bytes,
    MilliCpus,
    format_bytes,
    format_cpus,
    parse_bytes,
    parse_cpus,
)


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        pytest.param("2", 2000, id="whole CPUs"),
        pytest.param("750m", 750, id="thousandths"),
        pytest.param("0.1", 100, id="a fraction that binary floats miss"),
        pytest.param("1.0005", 1001, id="finer than a thousandth rounds up"),
        pytest.param("1u", 1, id="a millionth is a whole thousandth"),
        pytest.param("1n", 1, id="a billionth too"),
        pytest.param("1k", 1_000_000, id="a thousand CPUs"),
        pytest.param(".5", 500, id="no digit before the point"),
        pytest.param("+1.", 1000, id="a sign, and no digit after the point"),
        pytest.param("5e-1", 500, id="a negative exponent"),
        pytest.param("0", 0, id="nothing"),
    ],
)
def test_parse_cpus(text: str, thousandths: int) -> None:
    assert parse_cpus(text) == thousandths


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        pytest.param("1.5Gi", 3 << 29, id="binary with a fraction"),
        pytest.param("1e3", 1000, id="a decimal exponent"),
        pytest.param("1E3", 1000, id="a capital exponent"),
        pytest.param("1E", 10**18, id="exa, not an exponent"),
        pytest.param("1Ei", 1 << 60, id="exbi"),
        pytest.param("100k", 100_000, id="decimal"),
        pytest.param("1m", 1, id="a thousandth of a byte rounds up"),
        pytest.param("9223372036854775807", (1 << 63) - 1, id="the largest"),
    ],
)
def test_parse_bytes(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "not a number", id="nothing"),
        pytest.param("Gi", "not a number", id="only a suffix"),
        pytest.param(" 1", "not a number", id="a blank"),
        pytest.param("1_0", "not a number", id="Python's own digits"),
        pytest.param("1e", "unknown suffix 'e'", id="an exponent without digits"),
        pytest.param("1K", "unknown suffix 'K'", id="a capital kilo"),
        pytest.param("1ki", "unknown suffix 'ki'", id="a small kibi"),
        pytest.param("-1", "negative", id="less than nothing"),
        pytest.param("-0.0001", "negative", id="a little less than nothing"),
        pytest.param("9223372036854775808", "larger", id="one too many"),
        pytest.param("1e999", "larger", id="a number that would take long"),
        pytest.param("1e9999", "not a number", id="an exponent out of all bounds"),
        pytest.param("1" * 65, "not a number", id="a very long text"),
    ],
)
def test_parse_refuses(text: str, why: str) -> None:
    with pytest.raises(BadQuantity, match=why) as caught:
        parse_bytes(text)

    assert caught.value.text == text


@given(st.integers(0, (1 << 63) - 1))
def test_written_quantities_are_read_back(amount: int) -> None:
    assert parse_bytes(format_bytes(Bytes(amount))) == amount
    assert parse_cpus(format_cpus(MilliCpus(amount))) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (1536 << 20, "1536Mi"), (1 << 60, "1Ei"), (1000, "1000")],
)
def test_bytes_take_the_largest_suffix_without_a_fraction(
    amount: int, text: str
) -> None:
    assert format_bytes(Bytes(amount)) == text


@pytest.mark.parametrize(("amount", "text"), [(2000, "2"), (750, "750m"), (0, "0")])
def test_cpus_are_whole_or_thousandths(amount: int, text: str) -> None:
    assert format_cpus(MilliCpus(amount)) == text
