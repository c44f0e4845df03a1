"""The CPUs in a frame of ``top``: a map with their owners, and the use of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from nri_resmgr.cli.cpu_use import CpuUse, mean_use, use_text
from nri_resmgr.cli.look import OWNER_STYLES, Paint
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.documents import JsonObject

MARKS: Final = {"shared": "s", "reserved": "r", "isolated": "i", "idle": "·"}
"""Of CPUs that are not exclusive to one container or balloon."""

LABEL: Final = 10
"""Columns before a map or a bar."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_UNKNOWN: Final = "?"
_GROUP: Final = 8  # CPUs between two blanks
_GAP: Final = " "
_NODE_GAP: Final = " | "
_CELL_GAP: Final = "  "
_USE: Final = 4  # columns: 100%


class Owner(msgspec.Struct, frozen=True):
    """A container or balloon with exclusive CPUs.

    Attributes:
        name: Its name in the tables.
        cpus: Its exclusive CPUs.
        letter: Its mark in the map.
        style: Its colour.
    """

    name: str
    cpus: CpuSet
    letter: str
    style: str


def owners_of(state: JsonObject) -> tuple[Owner, ...]:
    """Find the containers and balloons with exclusive CPUs, by the first CPU."""
    found = [
        (title_of(one), CpuSet.parse(one["exclusive"])) for one in state["containers"]
    ]
    found += [
        (pool["name"], CpuSet.parse(pool["cpus"]))
        for pool in state["pools"]
        if pool["kind"] == "balloon" and not pool["within"]
    ]
    found = sorted((one for one in found if one[1]), key=lambda one: min(one[1]))
    return tuple(
        Owner(
            name,
            cpus,
            _LETTERS[number % len(_LETTERS)],
            OWNER_STYLES[number % len(OWNER_STYLES)],
        )
        for number, (name, cpus) in enumerate(found)
    )


def title_of(container: JsonObject) -> str:
    """Return the name of a container that people know."""
    return f"{container['namespace']}/{container['pod']}/{container['name']}"


def marks_of(
    state: JsonObject, owners: Sequence[Owner], paint: Paint
) -> Mapping[int, str]:
    """Return the mark of each online CPU, in its colour."""
    marks = dict.fromkeys(CpuSet.parse(state["cpus"]["online"]), _UNKNOWN)
    for word, mark in MARKS.items():
        shown = paint(word, mark)
        marks |= dict.fromkeys(CpuSet.parse(state["cpus"][word]), shown)
    for owner in owners:
        marks |= dict.fromkeys(owner.cpus, paint(owner.style, owner.letter))
    return marks


def draw_map(
    state: JsonObject, marks: Mapping[int, str], width: int, paint: Paint
) -> Iterator[str]:
    """Draw a row for each socket, with its nodes apart, and the meaning of marks.

    A row that is wider than *width* is folded. Above it are the numbers of CPUs: each
    stands over the first one of a group.
    """
    for socket in state["sockets"]:
        groups = tuple(_groups(state, CpuSet.parse(socket["cpus"])))
        nodes = ",".join(dict.fromkeys(str(group.node) for group in groups))
        labels = (f"node {nodes}", f"socket {socket['id']}")
        for row in _rows(groups, max(width - LABEL, _GROUP)):
            numbers, shown = "", ""
            for gap, group in row:
                columns = max(len(group.cpus), len(str(group.cpus[0])))
                numbers += f"{gap}{group.cpus[0]:<{columns}}"
                padding = " " * (columns - len(group.cpus))
                shown += gap + "".join(marks[cpu] for cpu in group.cpus) + padding
            yield f"{labels[0][: LABEL - 1]:<{LABEL}}{numbers}".rstrip()
            yield f"{labels[1][: LABEL - 1]:<{LABEL}}{shown}".rstrip()
            labels = ("", "")
    yield "  ".join(f"{paint(word, mark)} {word}" for word, mark in MARKS.items())


class _Group(msgspec.Struct, frozen=True):
    """CPUs of a node that stand together."""

    node: int
    cpus: tuple[int, ...]


def _groups(state: JsonObject, socket: CpuSet) -> Iterator[_Group]:
    seen = NO_CPUS
    for node in state["nodes"]:
        # Nodes of emulated NUMA list the same CPUs.
        here = (CpuSet.parse(node["cpus"]) & socket) - seen
        seen |= here
        yield from (_Group(node["id"], cpus) for cpus in _runs(tuple(here)))


def _runs(cpus: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield CPUs in groups in which each number follows from the first one.

    Their distance is that of most machines, 1, or more where numbers alternate between
    nodes.
    """
    step = min((two - one for one, two in pairwise(cpus)), default=1)
    run: tuple[int, ...] = ()
    for cpu in cpus:
        if len(run) == _GROUP or (run and cpu - run[-1] != step):
            yield run
            run = ()
        run += (cpu,)
    if run:
        yield run


def _rows(
    groups: Sequence[_Group], columns: int
) -> Iterator[Sequence[tuple[str, _Group]]]:
    """Yield groups in rows of at most *columns*, each with the gap before it."""
    row: list[tuple[str, _Group]] = []
    left = columns
    for group in groups:
        gap = ""
        if row:
            gap = _GAP if row[-1][1].node == group.node else _NODE_GAP
        needed = len(gap) + max(len(group.cpus), len(str(group.cpus[0])))
        if row and needed > left:
            yield row
            row, left = [], columns
            gap, needed = "", needed - len(gap)
        row.append((gap, group))
        left -= needed
    if row:
        yield row


def draw_use(
    state: JsonObject, marks: Mapping[int, str], use: CpuUse, width: int
) -> Iterator[str]:
    """Draw the use of each CPU in per cent, with its number and mark, by socket."""
    digits = len(str(max(marks, default=0)))
    columns = digits + len(" ? ") + _USE
    per_line = max((width + len(_CELL_GAP)) // (columns + len(_CELL_GAP)), 1)
    for socket in state["sockets"]:
        cpus = CpuSet.parse(socket["cpus"])
        yield f"socket {socket['id']}: {use_text(mean_use(use, cpus))} of its CPUs used"
        cells = [
            f"{cpu:>{digits}} {marks[cpu]} {use_text(use.get(cpu)):>{_USE}}"
            for cpu in cpus
        ]
        for start in range(0, len(cells), per_line):
            yield _CELL_GAP.join(cells[start : start + per_line])
