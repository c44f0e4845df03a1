"""CPU classes as an operator defines them, and their frequencies."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

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
    """Read a frequency in any letter case, rounded down to kHz; None for 0, not to set.

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


class TurboDomain(enum.StrEnum):
    """Scope in which classes compete for turbo; the values are those of documents."""

    PACKAGE = "package"
    SYSTEM = "system"


class PctPriority(enum.StrEnum):
    """Priority Core Turbo, set up by this daemon; values as in documents."""

    HIGH = "high"
    LOW = "low"


class CpuClass(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU class. What is None or empty is not set on the host.

    Attributes:
        name: Its name in documents and annotations.
        min: The lowest frequency of its CPUs.
        max: The highest frequency.
        governor: The scaling governor.
        epp: The energy performance preference: a word of the driver, or 0
            (performance) to 255 (power).
        uncore_min: The lowest frequency of the dies that its CPUs are on.
        uncore_max: The highest frequency of these dies.
        disabled_cstates: Names of idle states that its CPUs must not enter; all
            others are enabled, and an empty tuple enables all.
        wake_latency: Microseconds in which its CPUs must wake from idle, as the kernel
            writes them: ``0`` for no limit, ``n/a`` for no idle state but polling.
        turbo_priority: With a lower priority than another class in use in its domain,
            turbo means the base frequency for this class.
        pct_priority: High or low priority of Speed Select, set up by this daemon.
        pct_min: Frequency that cores of the priority get before others; None for `min`.
        pct_max: Frequency that they never exceed; None for `max`.
        sst_clos: Class of service of Speed Select, set up by other means.
        is_published: Whether the node publishes the number of its CPUs to the cluster.
    """

    name: str
    min: Frequency | None = None
    max: Frequency | None = None
    governor: str = ""
    epp: str | int | None = None
    uncore_min: Frequency | None = None
    uncore_max: Frequency | None = None
    disabled_cstates: tuple[str, ...] | None = None
    wake_latency: str = ""
    turbo_priority: int = 0
    pct_priority: PctPriority | None = None
    pct_min: Frequency | None = None
    pct_max: Frequency | None = None
    sst_clos: int | None = None
    is_published: bool = False
