"""Reads interrupt settings of documents and annotations."""

from __future__ import annotations

from typing import Final

from nri_resmgr.classes.irq.interrupts import ALL
from nri_resmgr.classes.irq.requests import IrqAffinity, IrqMode, IrqRule
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import InputError
from nri_resmgr.values.globs import check_glob

_AFFINITY: Final = ("claim", "mask", "mode")
_MODES: Final = ("mask-first", "claim-first")


def read_controllable(spec: Table) -> tuple[str, ...]:
    """Read which interrupts a policy may move: ``controllableInterrupts``.

    Returns:
        Patterns: numbers, and globs of names; ``*`` by default.

    Raises:
        BadSetting: It is not a list of patterns.
    """
    return read_patterns(spec, "controllableInterrupts", ALL) or ALL


def read_irq_rule(row: Table) -> IrqRule:
    """Read ``irqClaim`` and ``irqMode`` of a balloon type.

    Raises:
        BadSetting: One of them is invalid.
    """
    mode = row.choice("irqMode", ("", *IrqMode), "")
    claim = read_patterns(row, "irqClaim")
    return IrqRule(claim, IrqMode(mode) if mode else None)


def read_irq_affinity(found: object, path: str = "$") -> IrqAffinity:
    """Read ``{claim: [...], mask: [...], mode: mask-first|claim-first}``.

    Raises:
        BadSetting: It is something else.
    """
    table = Table.read(found, *_AFFINITY, path=path)
    return IrqAffinity(
        read_patterns(table, "claim"),
        read_patterns(table, "mask"),
        table.choice("mode", _MODES, _MODES[0]) == _MODES[1],
    )


def read_patterns(
    table: Table, key: str, default: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Read a list of interrupts: numbers, written as such or as text, and globs.

    Raises:
        BadSetting: An entry cannot match an interrupt of any machine.
    """
    patterns = table.texts(key, default, numbers=True)
    for place, pattern in enumerate(patterns):
        path = f"{table.at(key)}[{place}]"
        # A negative number would be a glob that matches nothing.
        if not pattern or pattern.startswith("-"):
            what = "expected the number of an interrupt, or a pattern of its name"
            raise BadSetting(path, f"{what}, not {pattern!r}")
        try:
            check_glob(pattern)
        except InputError as error:
            raise BadSetting(path, str(error)) from None
    return patterns
