"""Rows and columns of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Line up columns, two blanks apart.

    >>> print(format_table(("name", "CPUs"), [("web", "0-3"), ("database", "4")]))
    name      CPUs
    web       0-3
    database  4
    """
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )
