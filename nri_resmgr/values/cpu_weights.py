"""Conversion of CPU shares to the weights of cgroup v2."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

# Ranges of cpu.shares and cpu.weight, in the kernel and in runc.
_MIN_SHARES: Final = 2
_MAX_SHARES: Final = 262_144
_MAX_WEIGHT: Final = 10_000

# What floating-point numbers may add to a whole weight, which must not be rounded up.
_INEXACT: Final = 1e-9


def clamped_shares(shares: int) -> int:
    """Limit shares to the kernel's range, as the kernel does.

    >>> clamped_shares(0), clamped_shares(1024)
    (2, 1024)
    """
    return min(max(shares, _MIN_SHARES), _MAX_SHARES)


def weight_for(shares: int) -> int:
    """Return the ``cpu.weight`` that present runtimes compute from ``cpu.shares``.

    Source:
        opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value, since v0.0.3: a curve
        through 1024 and 100.

    >>> weight_for(2), weight_for(1024), weight_for(262_144)
    (1, 100, 10000)
    """
    return math.ceil(_curve(shares) - _INEXACT)


@lru_cache(maxsize=1024)
def weights_for(shares: int) -> frozenset[int]:
    """Return each ``cpu.weight`` that some runtime computes from ``cpu.shares``.

    Source:
        opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value, before and after
        v0.0.3: a straight line first, then the curve.
    """
    above = clamped_shares(shares) - _MIN_SHARES
    line = 1 + above * (_MAX_WEIGHT - 1) // (_MAX_SHARES - _MIN_SHARES)
    curve = _curve(shares)
    # Runtimes differ in how they round.
    around = (math.floor(curve), math.ceil(curve), math.ceil(curve) + 1)
    return frozenset((line, *(min(one, _MAX_WEIGHT) for one in around)))


def _curve(shares: int) -> float:
    log = math.log2(clamped_shares(shares))
    return math.pow(10, (log * log + 125 * log) / 612 - 7 / 34)
