"""The layout of a machine in a picture: nested boxes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from nri_resmgr.topology import Machine
from nri_resmgr.topology.memory import Node
from nri_resmgr.values import CpuSet, format_bytes

TILE: Final = 26  # the side of a CPU; all lengths are pixels
_GAP: Final = 6
_LABEL: Final = 16
_LETTER: Final = 6.5  # average width of a letter
_L3: Final = 3
_CORES_IN_ROW: Final = 8


class Box(msgspec.Struct, frozen=True):
    """A part of the machine, placed relative to the box around it.

    Attributes:
        kind: ``machine``, ``package``, ``die``, ``node``, ``cache``, ``core``, ``cpu``.
        label: The text above it; the number of a CPU.
        inside: The boxes in it.
    """

    kind: str
    label: str
    x: float
    y: float
    width: float
    height: float
    inside: tuple[Box, ...] = ()


def floor_plan(machine: Machine) -> Box:
    """Lay out a machine; every online CPU has one box."""
    parts = [_package(machine, one.id, one.cpus) for one in machine.packages]
    # Nodes of emulated NUMA share their CPUs, which are drawn in the lowest one.
    rest = [_memory(one) for one in machine.nodes if one not in _owners(machine)]
    return _around("machine", "", [*parts, *rest], _in_row(parts))


def _package(machine: Machine, number: int, cpus: CpuSet) -> Box:
    dies = [one for one in machine.dies if one.package == number]
    if len(dies) > 1:
        inside = []
        for one in dies:
            nodes = _nodes(machine, one.cpus)
            inside.append(_around("die", f"die {one.id}", nodes, len(nodes)))
    else:
        inside = _nodes(machine, cpus)
    return _around("package", f"socket {number}", inside, _in_row(inside))


def _owners(machine: Machine) -> list[Node]:
    return [machine.node_of(cpus.first) for cpus in machine.node_cpus]


def _nodes(machine: Machine, cpus: CpuSet) -> list[Box]:
    boxes = []
    for node in _owners(machine):
        if here := node.cpus & cpus:
            inside = list(_caches(machine, here))
            boxes.append(_around("node", _text(node), inside, _in_row(inside)))
    return boxes


def _caches(machine: Machine, cpus: CpuSet) -> Iterator[Box]:
    """Yield the level 3 caches, unless one covers the whole node."""
    rest = cpus
    caches = [one for one in machine.caches_at(_L3) if one.cpus & cpus]
    for cache in caches if len(caches) > 1 else ():
        here, rest = cache.cpus & rest, rest - cache.cpus
        size = f" {format_bytes(cache.size)}" if cache.size else ""
        yield _around("cache", f"L3{size}", _cores(machine, here), _CORES_IN_ROW)
    if rest:  # cores without a level 3 cache of their own: a box without a label
        yield _around("group", "", _cores(machine, rest), _CORES_IN_ROW)


def _cores(machine: Machine, cpus: CpuSet) -> list[Box]:
    boxes = []
    for core in machine.cores:
        threads = [Box("cpu", str(cpu), 0, 0, TILE, TILE) for cpu in core.cpus & cpus]
        if threads:
            boxes.append(_around("core", "", threads, len(threads)))
    return boxes


def _memory(node: Node) -> Box:
    label = _text(node)
    return Box("node", label, 0, 0, len(label) * _LETTER + 2 * _GAP, _LABEL + 2 * _GAP)


def _text(node: Node) -> str:
    if not node.memory:
        return f"node {node.id}, no memory"
    return f"node {node.id}, {format_bytes(node.memory)} {node.kind.value}"


def _in_row(boxes: Sequence[Box]) -> int:
    return math.ceil(math.sqrt(len(boxes))) or 1


def _around(kind: str, label: str, inside: Sequence[Box], in_row: int) -> Box:
    """Arrange boxes in rows, and put a box around them."""
    top = _GAP + (_LABEL if label else 0)
    placed: list[Box] = []
    width, y = len(label) * _LETTER + 2 * _GAP, float(top)
    for start in range(0, len(inside), max(in_row, 1)):
        row = inside[start : start + in_row]
        x = float(_GAP)
        for box in row:
            placed.append(msgspec.structs.replace(box, x=x, y=y))
            x += box.width + _GAP
        width = max(width, x)
        y += max(box.height for box in row) + _GAP
    return Box(kind, label, 0, 0, width, y, tuple(placed))
