from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.cpu.cpu_class import (
    BadFrequency,
    Frequency,
    FrequencyWord,
    parse_frequency,
)
from nri_resmgr.values import KiloHertz


@pytest.mark.parametrize(
    ("text", "frequency"),
    [
        pytest.param("2000000", KiloHertz(2_000_000), id="a bare number is in kHz"),
        pytest.param("2000000.0", KiloHertz(2_000_000), id="YAML's way of a float"),
        pytest.param("800000kHz", KiloHertz(800_000), id="kHz"),
        pytest.param(" 2900 mhz ", KiloHertz(2_900_000), id="blanks and letter case"),
        pytest.param("3.2GHz", KiloHertz(3_200_000), id="a part of a GHz"),
        pytest.param("1.0000019GHz", KiloHertz(1_000_001), id="a part of a kHz is cut"),
        pytest.param("0", None, id="nothing"),
        pytest.param("0.0GHz", None, id="nothing, with a unit"),
        pytest.param("min", FrequencyWord.MIN, id="the lowest"),
        pytest.param("BASE", FrequencyWord.BASE, id="a word in capitals"),
        pytest.param(" turbo", FrequencyWord.TURBO, id="turbo"),
    ],
)
def test_a_frequency_is_read(text: str, frequency: Frequency | None) -> None:
    assert parse_frequency(text) == frequency


@pytest.mark.parametrize(
    "text",
    ["", "fast", "-1", "3,2GHz", "3.GHz", ".5GHz", "2THz", "1e6", "min GHz", "٣"],
)
def test_an_invalid_frequency_is_reported(text: str) -> None:
    complaint = f"expected 3.2GHz, 2900MHz, kHz or a word, not {text!r}"
    with pytest.raises(BadFrequency, match=re.escape(complaint)):
        parse_frequency(text)


@given(
    number=st.decimals(0, 10_000, places=6, allow_nan=False),
    unit=st.sampled_from([("kHz", 1), ("MHz", 1000), ("GHz", 1_000_000)]),
)
def test_a_number_is_never_rounded_up(number: object, unit: tuple[str, int]) -> None:
    name, factor = unit
    exact = Fraction(str(number)) * factor
    found = parse_frequency(f"{number}{name}") or 0

    assert not isinstance(found, FrequencyWord)
    assert exact - 1 < found <= exact
