"""Reads interrupt settings of documents and annotations."""

from __future__ import annotations

from typing import Final

from nri_resmgr.classes.irq.interrupts import ALL, check_pattern
from nri_resmgr.classes.irq.requests import IrqAffinity, IrqMode, IrqRule
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import InputError

_AFFINITY: Final = ("claim", "mask", "mode")
_MODES: Final = ("mask-first", "claim-first")


def read_controllable(spec: Table) -> tuple[str, ...]:
    """Read which interrupts a policy may move: ``controllableInterrupts``.

    Returns:
        Patterns: numbers, and globs of names; ``*`` by default.

    Raises:
        BadSetting: It is not a list of patterns.
    """
    return read_patterns(spec, "controllableInterrupts") or ALL


def read_irq_rule(row: Table) -> IrqRule:
    """Read ``irqClaim`` and ``irqMode`` of a balloon type.

    Raises:
        BadSetting: One of them is invalid.
    """
    mode = row.choice("irqMode", tuple(IrqMode), "")
    claim = read_patterns(row, "irqClaim")
    return IrqRule(claim, IrqMode(mode) if mode else None)


def read_irq_affinity(found: object, path: str = "$") -> IrqAffinity:
    """Read the value of an ``irq-affinity`` annotation.

    Args:
        found: ``{claim: [...], mask: [...], mode: mask-first|claim-first}``.
        path: Its place in a document.

    Raises:
        BadSetting: It is something else.
    """
    table = Table.read(found, *_AFFINITY, path=path)
    return IrqAffinity(
        read_patterns(table, "claim"),
        read_patterns(table, "mask"),
        table.choice("mode", _MODES, _MODES[0]) == _MODES[1],
    )


def read_patterns(table: Table, key: str) -> tuple[str, ...]:
    """Read a list of interrupts: numbers, written as such or as text, and globs.

    Raises:
        BadSetting: An entry cannot match an interrupt of any machine.
    """
    rows = dict(table.rows)
    found = rows.get(key)
    if isinstance(found, list):
        # type(), not isinstance: a boolean is an int as well, and is an error.
        rows[key] = [str(one) if type(one) is int else one for one in found]
    patterns = Table(table.path, rows).texts(key, ())
    for place, pattern in enumerate(patterns):
        path = f"{table.at(key)}[{place}]"
        # A negative number would be a glob that matches nothing.
        if not pattern or pattern.startswith("-"):
            what = "expected the number of an interrupt, or a pattern of its name"
            raise BadSetting(path, f"{what}, not {pattern!r}")
        try:
            check_pattern(pattern)
        except InputError as error:
            raise BadSetting(path, str(error)) from None
    return patterns
