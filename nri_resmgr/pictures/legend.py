"""The lines below the plans: the key, holders, shared CPUs, pools, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from nri_resmgr.pictures.cpus import Cpus, tile
from nri_resmgr.pictures.floorplan import TILE, WIDEST, Box
from nri_resmgr.pictures.text import LETTER, columns_of, escaped, folded
from nri_resmgr.pictures.values import Note, Picture, PoolList, ShownPool
from nri_resmgr.values import CpuSet
from nri_resmgr.values.counts import count_text

_LINE: Final = 18
_BASELINE: Final = 13  # of the letters of a line
# The heights and baselines of other rows.
_HEIGHTS: Final = {"heading": (_LINE + 8, _LINE), "key": (TILE + 4, 17)}
_INDENT: Final = 34  # of words, beside a sample
_SAMPLE: Final = 14
_BAR: Final = 12  # the height of a pool's bar
_COLUMNS: Final = int((WIDEST - _INDENT) / LETTER)

_KEY: Final = {
    "exclusive": "exclusive: a thick frame, in the colour of the container",
    "shared": "shared: a stripe for each container that may run there",
    "free": "free: no container may run there at present",
    "reserved": "reserved for the node's system containers",
    "isolated": "isolated by isolcpus=",
    "chosen": "outlined: a CPU of the chosen pool",
    "aside": "grey: other containers",
}


class Row(msgspec.Struct, frozen=True):
    """A row of the legend.

    Attributes:
        svg: Its elements, relative to its upper left corner.
    """

    width: float
    height: float
    svg: str


def legend_rows(picture: Picture, cpus: Cpus, boxes: Sequence[Box]) -> Iterator[Row]:
    """Yield the rows from above to below; each is at most `WIDEST` wide."""
    yield from _key(picture, cpus, boxes)
    if holders := list(_holders(picture, cpus)):
        yield _heading("containers")
        yield from holders
    if shared := list(_shared(picture, cpus)):
        yield _heading("shared CPUs")
        yield from shared
    for one in picture.pools:
        yield _heading(one.heading)
        yield from _pools(one, cpus.colour(one.holder), picture, boxes[0])
    if picture.notes:
        yield _heading("notes")
        yield from map(_note, picture.notes)


def _key(picture: Picture, cpus: Cpus, boxes: Sequence[Box]) -> Iterator[Row]:
    """Explain what is in the picture, and nothing else."""
    found = {
        name
        for place, box in enumerate(boxes)
        for cpu in box.cpus
        for name in cpus.classes(place, cpu)
    }
    if any(one.is_aside for one in picture.holders):
        found.add("aside")
    for name, words in _KEY.items():
        if name in found:
            sample = f'<g class="sample {name}">{tile([name])}</g>'
            yield _words(words, sample, "key")


def _holders(picture: Picture, cpus: Cpus) -> Iterator[Row]:
    for number, one in enumerate(picture.holders):
        if not one.is_aside:
            words = f"{one.title}  {one.words}"
            yield _words(words, _filled(cpus.colour(number)), "holder")


def _shared(picture: Picture, cpus: Cpus) -> Iterator[Row]:
    for place, numbers, fill, mix in cpus.shared():
        names = ", ".join(picture.holders[one].title for one in mix)
        heading = picture.plans[place].heading
        when = f"{heading}: " if heading else ""
        how = count_text(len(mix), "line above", "lines above")
        if any(picture.holders[one].is_aside for one in mix):
            how = count_text(len(mix), "container")
        words = f"{when}CPUs {numbers}, shared by {how}: {names}"
        scale = _SAMPLE / TILE
        sample = f'<use href="{fill}" transform="scale({scale:.3f})"/>'
        yield _words(words, sample, "sharers")


def _pools(found: PoolList, colour: str, picture: Picture, plan: Box) -> Iterator[Row]:
    own = picture.holders[found.holder].held[0].cpus
    order = list(plan.cpus)
    for number, pool in enumerate(found.pools, 1):
        yield _pool(number, pool)
        yield _bar(pool, own, order, colour)


def _pool(number: int, pool: ShownPool) -> Row:
    chosen = " (chosen)" if pool.is_chosen else ""
    words = f"{number}. {pool.name}{chosen}: CPUs {pool.cpus or 'none'}"
    words += f"; {pool.words}" if pool.words else ""
    kind = "pool chosen" if pool.is_chosen else "pool"
    return _words(words, "", kind, pool.details)


def _bar(pool: ShownPool, own: CpuSet, order: Sequence[int], colour: str) -> Row:
    """Draw the CPUs of a pool in a row, those of the container in its colour."""
    cell = min(8.0, (WIDEST - _INDENT) / max(len(order), 1))
    whole = f'<rect class="bar" width="{cell * len(order):g}" height="{_BAR}"/>'
    runs = [
        *_runs(pool.cpus, order, cell, 'class="fill of-pool"'),
        *_runs(pool.cpus & own, order, cell, f'class="fill" style="fill: {colour}"'),
    ]
    kind = "chosen" if pool.is_chosen else "considered"
    svg = (
        f'<g class="bar-of {kind}" transform="translate({_INDENT} 0)">'
        f"{''.join(runs)}{whole}</g>"
    )
    return Row(_INDENT + cell * len(order), _BAR + 6, svg)


def _runs(cpus: CpuSet, order: Sequence[int], cell: float, how: str) -> Iterator[str]:
    """Yield a rectangle for each run of CPUs that are beside each other."""
    inside = [False, *(cpu in cpus for cpu in order), False]
    edges = [at for at, (one, two) in enumerate(pairwise(inside)) if one != two]
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        yield (
            f'<rect {how} x="{begin * cell:g}" width="{(end - begin) * cell:g}" '
            f'height="{_BAR}"/>'
        )


def _note(note: Note) -> Row:
    kind = "note refused" if note.is_refusal else "note"
    return _words(note.words, "", kind, note.details)


def _heading(words: str) -> Row:
    return _words(words, "", "heading")


def _filled(colour: str) -> str:
    return (
        f'<rect class="fill" y="2" width="{_SAMPLE}" height="{_SAMPLE}" '
        f'style="fill: {colour}"/>'
    )


def _words(words: str, sample: str = "", kind: str = "words", details: str = "") -> Row:
    """Write a text beside a sample, in as many lines as it needs."""
    height, baseline = _HEIGHTS.get(kind, (_LINE, _BASELINE))
    x = 0 if kind == "heading" else _INDENT
    lines = folded(words, _COLUMNS)
    spans = "".join(
        f'<tspan x="{x}" dy="{_LINE if number else 0}">{escaped(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    why = f"<title>{escaped(details)}</title>" if details else ""
    svg = f'{sample}<text class="{kind}" x="{x}" y="{baseline}">{why}{spans}</text>'
    width = x + max(columns_of(line.rstrip()) for line in lines) * LETTER
    return Row(width, height + _LINE * (len(lines) - 1), svg)
