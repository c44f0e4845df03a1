"""The layout of a machine in a picture: nested boxes that fit the width of a screen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from nri_resmgr.topology import Machine
from nri_resmgr.topology.memory import Node
from nri_resmgr.values import CpuSet, format_bytes

TILE: Final = 26  # the side of a CPU; all lengths are pixels
WIDEST: Final = 1200
"""Pixels of a layout at most: a screen has 1280, of which a browser takes some."""

_GAP: Final = 5
_GAP_IN_CORE: Final = 2
_LABEL: Final = 16
_LETTER: Final = 7.3
_L3: Final = 3
_SHAPE: Final = 2.0  # width by height that rows of boxes aim at
_UNFILLED: Final = 4.0  # how much an unfilled row counts beside the shape


class Box(msgspec.Struct, frozen=True):
    """A part of the machine, placed relative to the box around it.

    Attributes:
        kind: ``picture``, ``machine``, ``package``, ``die``, ``node``, ``cache``,
            ``core``, ``cpu``; ``group`` for boxes without anything around them.
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

    @property
    def cpus(self) -> Iterator[int]:
        """The CPUs in it, in the order in which they are drawn."""
        if self.kind == "cpu":
            yield int(self.label)
        for box in self.inside:
            yield from box.cpus


def beside(plans: Sequence[Box]) -> Box:
    """Arrange the layouts of several machines, side by side if they fit."""
    return _around("picture", "", plans, WIDEST)


def floor_plan(machine: Machine, heading: str = "") -> Box:
    """Lay out a machine; every online CPU has one box.

    The rows of each part have as many boxes as give a part twice as wide as high, and
    never more than fit: the whole is at most `WIDEST` wide, less the gaps around it.
    """
    most = WIDEST - 4 * _GAP
    parts = [_package(machine, one.id, one.cpus, most) for one in machine.packages]
    # Nodes of emulated NUMA share their CPUs, which are drawn in the lowest one.
    rest = [_memory(one) for one in machine.nodes if one not in _owners(machine)]
    if not rest:
        return _around("machine", heading, parts, most + 2 * _GAP)
    groups = [_around("group", "", one, most) for one in (parts, rest)]
    return _in_rows("machine", heading, groups, 1)


def _package(machine: Machine, number: int, cpus: CpuSet, most: float) -> Box:
    dies = [one for one in machine.dies if one.package == number]
    if len(dies) > 1:
        room = most - 2 * _GAP
        inside = [
            _around("die", f"die {one.id}", _nodes(machine, one.cpus, room), room)
            for one in dies
        ]
    else:
        inside = _nodes(machine, cpus, most)
    return _around("package", f"socket {number}", inside, most)


def _owners(machine: Machine) -> list[Node]:
    return [machine.node_of(cpus.first) for cpus in machine.node_cpus]


def _nodes(machine: Machine, cpus: CpuSet, most: float) -> list[Box]:
    room, boxes = most - 2 * _GAP, []
    for node in _owners(machine):
        if here := node.cpus & cpus:
            inside = list(_caches(machine, here, room - 2 * _GAP))
            boxes.append(_around("node", _text(node), inside, room))
    return boxes


def _caches(machine: Machine, cpus: CpuSet, most: float) -> Iterator[Box]:
    """Yield the level 3 caches, unless one covers the whole node."""
    rest = cpus
    caches = [one for one in machine.caches_at(_L3) if one.cpus & cpus]
    for cache in caches if len(caches) > 1 else ():
        here, rest = cache.cpus & rest, rest - cache.cpus
        size = f" {format_bytes(cache.size)}" if cache.size else ""
        cores = _cores(machine, here, most - 2 * _GAP)
        yield _around("cache", f"L3{size}", cores, most)
    if rest:  # cores without a level 3 cache of their own: a box without a label
        cores = _cores(machine, rest, most - 2 * _GAP)
        yield _around("group", "", cores, most)


def _cores(machine: Machine, cpus: CpuSet, most: float) -> list[Box]:
    boxes = []
    for core in machine.cores:
        threads = [Box("cpu", str(cpu), 0, 0, TILE, TILE) for cpu in core.cpus & cpus]
        if threads:
            fit = int((most - _GAP_IN_CORE) // (TILE + _GAP_IN_CORE))
            boxes.append(_in_rows("core", "", threads, min(len(threads), fit)))
    return boxes


def _memory(node: Node) -> Box:
    label = _text(node)
    return Box("node", label, 0, 0, len(label) * _LETTER + 2 * _GAP, _LABEL + 2 * _GAP)


def _text(node: Node) -> str:
    if not node.memory:
        return f"node {node.id}, no memory"
    return f"node {node.id}, {format_bytes(node.memory)} {node.kind.value}"


def _around(kind: str, label: str, inside: Sequence[Box], most: float) -> Box:
    """Arrange boxes in rows of the best length, and put a box around them."""
    best, least = _in_rows(kind, label, inside, 1), math.inf
    for in_row in range(1, len(inside) + 1):
        box = _in_rows(kind, label, inside, in_row)
        if box.width > most:
            break
        unfilled = -len(inside) % in_row / len(inside)
        cost = abs(math.log(box.width / box.height / _SHAPE)) + _UNFILLED * unfilled
        if cost < least:
            best, least = box, cost
    return best


def _in_rows(kind: str, label: str, inside: Sequence[Box], in_row: int) -> Box:
    gap = _GAP_IN_CORE if kind == "core" else _GAP
    top = gap + (_LABEL if label else 0)
    placed: list[Box] = []
    width, y = len(label) * _LETTER + 2 * gap, float(top)
    for start in range(0, len(inside), in_row):
        row = inside[start : start + in_row]
        x = float(gap)
        for box in row:
            placed.append(msgspec.structs.replace(box, x=x, y=y))
            x += box.width + gap
        width = max(width, x)
        y += max(box.height for box in row) + gap
    return Box(kind, label, 0, 0, width, y, tuple(placed))
