"""Speed of CPU sets on the largest machines, compared with Python's own sets.

Run ``pytest tests/benchmarks/bench_cpuset.py --benchmark-columns=median``. Every set
is of 2048 CPUs, a third of them taken at random: no range is long.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from nri_resmgr.values import CpuSet

CPUS: Final = 2048


def drawn(seed: int) -> frozenset[int]:
    """Draw the CPUs of a set."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable state, no secret
    return frozenset(chance.sample(range(CPUS), 2 * CPUS // 3))


INTS, OTHER_INTS = drawn(1), drawn(2)
SET, OTHER = CpuSet.from_iterable(INTS), CpuSet.from_iterable(OTHER_INTS)
SAME, SAME_INTS = CpuSet.from_iterable(INTS), frozenset(sorted(INTS))
TEXT = str(SET)


def text_of(ids: frozenset[int]) -> str:
    """Write the list format the plain way."""
    ranges: list[list[int]] = []
    for number in sorted(ids):
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ",".join("-".join(map(str, one)) for one in ranges)


def ids_of(text: str) -> frozenset[int]:
    """Read the list format the plain way."""
    ids: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        ids.update(range(int(first), int(last or first) + 1))
    return frozenset(ids)


OPERATIONS: Final[dict[str, tuple[Callable[[], object], Callable[[], object]]]] = {
    "parse": (lambda: CpuSet.parse(TEXT), lambda: ids_of(TEXT)),
    "format": (lambda: str(SET), lambda: text_of(INTS)),
    "union": (lambda: SET | OTHER, lambda: INTS | OTHER_INTS),
    "difference": (lambda: SET - OTHER, lambda: INTS - OTHER_INTS),
    "iterate": (lambda: list(SET), lambda: sorted(INTS)),
    "the lowest 64": (lambda: SET.lowest(64), lambda: frozenset(sorted(INTS)[:64])),
    "compare": (lambda: SET == SAME, lambda: INTS == SAME_INTS),
    "subset": (lambda: SET <= OTHER, lambda: INTS <= OTHER_INTS),
    "count": (lambda: len(SET), lambda: len(INTS)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", ["CpuSet", "frozenset"])
def test_sets_of_2048(benchmark: BenchmarkFixture, kind: str, operation: str) -> None:
    ours, pythons = OPERATIONS[operation]

    benchmark(ours if kind == "CpuSet" else pythons)
