"""Who runs where, as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

OWN, SHARED, FREE = "█", "▒", "·"


class Placement(msgspec.Struct, frozen=True):
    """One container's row."""

    name: str
    qos: str
    asks: str
    cpus: CpuSet
    mems: str
    exclusive: bool = False


def format_placements(machine: Machine, rows: Iterable[Placement]) -> str:
    """Draw a table with a map of the machine's CPUs, node by node.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> row = Placement("db", "Guaranteed", "1 CPU", CpuSet.of(1), "0", exclusive=True)
    >>> print(format_placements(parse_spec("1s1n2c1t"), [row]))
    container  qos         asks   memory  CPUs  map
    db         Guaranteed  1 CPU  0       1     ·█
    """
    header = ("container", "qos", "asks", "memory", "CPUs", "map")
    lines = [header, *(_cells(machine, row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(_padded(line, widths) for line in lines)


def _cells(machine: Machine, row: Placement) -> tuple[str, ...]:
    drawn = OWN if row.exclusive else SHARED
    cpus = row.cpus or machine.online  # nobody said anything: everywhere
    nodes = (node.cpus & machine.online for node in machine.nodes)
    groups = ("".join(_map(node, cpus, drawn)) for node in nodes if node)
    return (
        row.name,
        row.qos,
        row.asks,
        row.mems,
        str(row.cpus) or "any",
        " ".join(groups),
    )


def _map(node: CpuSet, cpus: CpuSet, drawn: str) -> Iterator[str]:
    return (drawn if cpu in cpus else FREE for cpu in node)


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()
