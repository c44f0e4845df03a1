"""Tables of ``deploy/README.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_README: Final = Path(__file__).parents[2] / "deploy" / "README.md"


def table_below(header: str) -> tuple[tuple[str, ...], ...]:
    """Return the cells of a table.

    Args:
        header: The first cell of its head.
    """
    lines = iter(_README.read_text().splitlines())
    next(line for line in lines if line.startswith(f"| {header} |"))
    next(lines)  # the rule below the head
    rows = []
    while (line := next(lines, "")).startswith("|"):
        rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return tuple(rows)


def block_below(heading: str, language: str) -> str:
    """Return the first code block in a language below a heading."""
    _, _, below = _README.read_text().partition(f"\n### {heading}\n")
    _, _, block = below.partition(f"```{language}\n")
    text, end, _ = block.partition("```\n")
    assert end, f"no block of {language} below {heading!r}"
    return text


def words_of(cell: str) -> frozenset[str]:
    """Return what a cell lists, without the marks of code."""
    return frozenset(cell.replace("`", "").split(", "))
