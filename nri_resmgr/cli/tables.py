"""Tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nri_resmgr.values.printable import printable


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Align columns, two blanks apart; cells are made printable.

    >>> print(format_table(("name", "CPUs"), [("web", "0-3"), ("database", "4")]))
    name      CPUs
    web       0-3
    database  4
    """
    lines = [tuple(header), *(tuple(map(printable, row)) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def format_changes(
    header: Sequence[str], rows: Iterable[Sequence[str]], refused: str
) -> str:
    """Align changes in a table, with the sentences of refusals below.

    Args:
        header: Of the columns; the last two are the old and the new value.
        rows: The last three cells are the property, its old and its new value, which
            are empty for none.
        refused: The property of rows whose values are sentences.
    """
    cells, sentences = [], []
    for row in rows:
        *first, what, before, after = row
        if what == refused:
            sentences += [f"  {printable(one)}" for one in (before, after) if one]
            before, after = (refused if one else "" for one in (before, after))
        cells.append((*first, what, before or "-", after or "-"))
    table = format_table(header, cells)
    return "\n".join((table, "", refused, *sentences)) if sentences else table
