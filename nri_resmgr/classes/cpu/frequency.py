"""A frequency as an operator writes it: a number with a unit, or a word."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from nri_resmgr.values import InputError, KiloHertz

_PATTERN: Final = (
    r"\s*(?:(?P<whole>\d{1,12})(?:\.(?P<part>\d{1,12}))?\s*(?P<unit>[kMG]Hz)?"
    r"|(?P<word>min|base|turbo))\s*"
)
_UNITS: Final = {"khz": 1, "mhz": 1_000, "ghz": 1_000_000}


class FrequencyWord(enum.StrEnum):
    """Words for frequencies that differ from CPU to CPU."""

    MIN = "min"
    BASE = "base"
    TURBO = "turbo"


Frequency: TypeAlias = KiloHertz | FrequencyWord


@dataclass(eq=False)
class BadFrequency(InputError):
    """Text is not a frequency."""

    text: str

    def __str__(self) -> str:
        return f"expected 3.2GHz, 2900MHz, kHz or a word, not {self.text!r}"


def parse_frequency(text: str) -> Frequency | None:
    """Read a frequency in any letter case, rounded down to kHz.

    Returns:
        None for 0, which means not to set it.

    Raises:
        BadFrequency: The text is no frequency.

    Source:
        nri-plugins, ``Frequency`` of the CPU classes.

    >>> parse_frequency("3.2GHz"), parse_frequency("2900 mhz"), parse_frequency("0")
    (3200000, 2900000, None)
    >>> parse_frequency("Turbo")
    <FrequencyWord.TURBO: 'turbo'>
    """
    match = re.fullmatch(_PATTERN, text, re.ASCII | re.IGNORECASE)
    if match is None:
        raise BadFrequency(text)
    if match["word"]:
        return FrequencyWord(match["word"].lower())
    part = match["part"] or ""
    unit = _UNITS[(match["unit"] or "kHz").lower()]
    found = int(match["whole"] + part) * unit // 10 ** len(part)
    return KiloHertz(found) if found else None
