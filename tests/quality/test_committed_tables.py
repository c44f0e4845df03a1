"""Rows of docs/placement-quality.md are what `make quality` would write now."""

from __future__ import annotations

from typing import Final

import pytest

from tests.docs.markdown import table
from tests.docs.regions import regions
from tests.quality.__main__ import (
    HEADER,
    LOADS,
    MACHINES,
    PAGE,
    QUALITY,
    SEEDS,
    heading,
    measure,
    row_of,
)

MACHINE: Final = "1 socket, 16 CPUs"
COMMITTED: Final = regions(PAGE.read_text(encoding="utf-8"), marker="measured")


@pytest.mark.parametrize("placer", ["topology-aware", "balloons", "static"])
def test_a_row_is_what_its_lives_are_now(placer: str) -> None:
    load = LOADS[0]
    lives = [measure(MACHINES[MACHINE], placer, load, seed) for seed in SEEDS]
    *_, row = table(HEADER, [row_of(placer, lives)]).splitlines()

    section = COMMITTED[QUALITY].partition(heading(MACHINE, load))[2]
    rows = section.partition("###")[0].splitlines()
    [committed] = [one for one in rows if one.startswith(f"| {placer} |")]
    assert row == committed, "docs/placement-quality.md is old: run `make quality`"
