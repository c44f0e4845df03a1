"""Quantities with a unit, and Kubernetes' text form of them, in exact arithmetic."""

from __future__ import annotations

import re
from typing import Final, NewType

from nri_resmgr.values.errors import BadQuantity

MilliCpus = NewType("MilliCpus", int)
"""Thousandths of one CPU's time."""

ONE_CPU: Final = 1000
"""One CPU in `MilliCpus`."""

Bytes = NewType("Bytes", int)
"""Memory, in bytes."""

KiloHertz = NewType("KiloHertz", int)
"""A frequency as cpufreq and uncore files give it."""

# A Kubernetes quantity is an int64; this also bounds the work of parsing one.
_MAX: Final = (1 << 63) - 1
_MAX_TEXT: Final = 64

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?:[eE](?P<exponent>[+-]?\d{1,3})|(?P<suffix>[a-zA-Z]{0,2}))",
    re.ASCII,
)

_BINARY: Final = {f"{letter}i": 1024**n for n, letter in enumerate("KMGTPE", 1)}
# Suffix to numerator and denominator. Whole numbers: fractions would import decimal.
_SCALES: Final = (
    {"": (1, 1)}
    | {suffix: (1, 1000**n) for n, suffix in enumerate("mun", 1)}
    | {suffix: (1000**n, 1) for n, suffix in enumerate("kMGTPE", 1)}
    | {suffix: (factor, 1) for suffix, factor in _BINARY.items()}
)


def parse_cpus(text: str) -> MilliCpus:
    """Parse a CPU quantity, rounded up to thousandths.

    Raises:
        BadQuantity: Not a quantity, negative, or above an int64 of thousandths.

    Source:
        Kubernetes apimachinery ``resource.Quantity``, ``MilliValue``.

    >>> parse_cpus("1.5"), parse_cpus("750m"), parse_cpus("1u")
    (1500, 750, 1)
    """
    return MilliCpus(_scaled(text, ONE_CPU))


def parse_bytes(text: str) -> Bytes:
    """Parse a memory quantity, rounded up to bytes.

    Raises:
        BadQuantity: Not a quantity, negative, or above an int64 of bytes.

    Source:
        Kubernetes apimachinery ``resource.Quantity``, ``Value``.

    >>> parse_bytes("1.5Gi"), parse_bytes("1e3"), parse_bytes("1E")
    (1610612736, 1000, 1000000000000000000)
    """
    return Bytes(_scaled(text, 1))


def format_cpus(amount: MilliCpus) -> str:
    """Format CPUs as Kubernetes does: ``"2"``, ``"750m"``."""
    whole, rest = divmod(amount, ONE_CPU)
    return f"{amount}m" if rest else str(whole)


def format_bytes(amount: Bytes) -> str:
    """Format memory with the largest binary suffix that needs no fraction."""
    for suffix, factor in reversed(_BINARY.items()):
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return str(amount)


def _scaled(text: str, unit: int) -> int:
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if match is None:
        raise BadQuantity(text, "not a number with a Kubernetes suffix")
    if match["exponent"]:
        exponent = int(match["exponent"])
        scale = (10 ** max(exponent, 0), 10 ** max(-exponent, 0))
    elif match["suffix"] in _SCALES:
        scale = _SCALES[match["suffix"]]
    else:
        raise BadQuantity(text, f"unknown suffix {match['suffix']!r}")
    whole, _, digits = match["number"].partition(".")
    above, below = scale
    amount: int = -(-int(whole + digits) * above * unit // (below * 10 ** len(digits)))
    if amount < 0 or match["number"].startswith("-"):
        raise BadQuantity(text, "negative")
    if amount > _MAX:
        raise BadQuantity(text, "larger than any node")
    return amount
