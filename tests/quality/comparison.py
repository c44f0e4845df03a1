"""Where policies are worse than the kubelet, counted over the tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from tests.docs.markdown import table
from tests.quality.kubelet_manager import BEST_EFFORT
from tests.quality.policies import POLICIES

Rows: TypeAlias = Mapping[str, Mapping[str, str]]
"""The cells of a table, by what places the containers and by column."""

_KUBELET: Final = f"kubelet, {BEST_EFFORT}"
_MORE_IS_BETTER: Final = ("in one node", "memory near")
_NO_MEASURE: Final = ("placed by", "containers")


def against_kubelet(body: str) -> str:
    """Return a table of how often, and by how much, each policy is worse.

    Args:
        body: The measured tables, each with a heading.
    """
    tables = [_rows_of(part) for part in body.split("### ")[1:]]
    columns = [one for one in tables[0][_KUBELET] if one not in _NO_MEASURE]
    rows = [(one, *(_worse(one, name, tables) for name in POLICIES)) for one in columns]
    return table((f"worse, of {len(tables)} tables", *POLICIES), rows)


def _rows_of(part: str) -> Rows:
    lines = [one for one in part.splitlines() if one.startswith("| ")]
    header, *rows = ([cell.strip() for cell in one.split("|")[1:-1]] for one in lines)
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def _worse(column: str, policy: str, tables: Sequence[Rows]) -> str:
    sign = -1 if column in _MORE_IS_BETTER else 1
    unit = " points" if "%" in tables[0][policy][column] else ""
    found = [
        round(sign * (_figure(one[policy][column]) - _figure(one[_KUBELET][column])), 2)
        for one in tables
    ]
    count = sum(1 for one in found if one > 0)
    return f"{count}, by up to {max(found):g}{unit}" if count else "0"


def _figure(cell: str) -> float:
    return float(cell.removesuffix(" %"))
