"""Rows of the tables in docs/benchmarks.md, and the machine that they are of."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HEADER: Final = "| what | median | range | aim |\n|---|---|---|---|"


def print_row(what: str, figures: Sequence[float], aim: str = "") -> None:
    """Print the median and the range of figures."""
    median = statistics.median(figures)
    low, high = min(figures), max(figures)
    cells = (what, rounded(median), f"{rounded(low)} to {rounded(high)}", aim)
    print_cells(*cells)


def print_cells(*cells: str) -> None:
    """Print a row at once, so that a long run can be followed."""
    print(f"| {' | '.join(cells)} |", flush=True)


def print_header(*cells: str) -> None:
    """Print the head of a table."""
    print_cells(*cells)
    print("|---" * len(cells) + "|", flush=True)


def rounded(figure: float) -> str:
    """Return a figure with three digits."""
    return f"{figure:.3g}" if figure < 100 else f"{figure:.0f}"


def machine() -> str:
    """Return what this machine is."""
    model = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    return (
        f"{os.cpu_count()} CPUs of {model}, Linux {platform.release()}, "
        f"Python {platform.python_version()}"
    )


def busy_machine() -> str:
    """Return what this machine is, and how many processes want its CPUs now."""
    return f"{machine()}; load {os.getloadavg()[0]:.1f} at the start"
