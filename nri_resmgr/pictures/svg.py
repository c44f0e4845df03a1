"""A picture as SVG: the plans, and the legend below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.pictures.cpus import Cpus
from nri_resmgr.pictures.floorplan import Box, beside, floor_plan
from nri_resmgr.pictures.legend import legend_rows
from nri_resmgr.pictures.text import escaped
from nri_resmgr.pictures.values import Picture

_MARGIN: Final = 12

# Fills of holders are light in both schemes, with black letters on them.
_STYLE: Final = """
svg { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  background: #fff; color: #222; color-scheme: light dark }
rect { fill: none; stroke: #888 }
text { fill: currentColor; white-space: pre; user-select: text }
.fill, .core > .box, .group > .box { stroke: none }
.free .frame { fill: #eee } .exclusive .frame { stroke: #000; stroke-width: 2 }
.aside .frame { fill: #aaa } .reserved .frame { stroke-dasharray: 4 2 }
.isolated .frame { stroke-dasharray: 1 2 }
.outline { stroke: #06c; stroke-width: 1.5 } .of-pool { fill: #9bd }
.id, .mark { fill: #111; font-size: 10px } .id { text-anchor: middle }
.mark { font-size: 8px; font-weight: bold }
.heading, .pool.chosen { font-weight: bold } .refused { fill: #c33 }
@media (prefers-color-scheme: dark) {
  svg { background: #161616; color: #ddd }
  .free .frame { fill: #333 } .exclusive .frame { stroke: #fff }
  .free .id, .free .mark, .sample .mark { fill: #ddd }
  .outline { stroke: #6bf } .of-pool { fill: #357 } .refused { fill: #f77 }
}
"""


def picture_svg(picture: Picture) -> str:
    """Draw a picture.

    It needs no other file, follows the light or dark scheme of its reader, and is at
    most `floorplan.WIDEST` pixels wide, and margins; its texts can be selected.
    """
    cpus = Cpus(picture)
    boxes = [floor_plan(one.machine, one.heading) for one in picture.plans]
    whole = beside(boxes)
    rows, y = [], whole.height + 2 * _MARGIN
    width = whole.width
    for row in legend_rows(picture, cpus, boxes):
        rows.append(f'<g transform="translate({_MARGIN} {y:g})">{row.svg}</g>')
        y += row.height
        width = max(width, row.width)
    width += 2 * _MARGIN
    y += _MARGIN
    plans = (
        part
        for place, box in enumerate(whole.inside)
        for part in _boxes(box, place, cpus)
    )
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{y:g}"',
        f'viewBox="0 0 {width:g} {y:g}">',
        f"<title>{escaped(picture.title)}</title>",
        f"<style>{_STYLE}</style>",
        f"<defs>{''.join(cpus.definitions())}</defs>",
        f'<g transform="translate({_MARGIN} {_MARGIN})">',
        *plans,
        "</g>",
        *rows,
        "</svg>",
    )
    return "\n".join(parts) + "\n"


def _boxes(box: Box, place: int, cpus: Cpus) -> Iterator[str]:
    yield f'<g class="{box.kind}" transform="translate({box.x:g} {box.y:g})">'
    if box.kind == "cpu":
        yield from cpus.draw(place, int(box.label))
    else:
        yield (
            f'<rect class="box" width="{box.width:g}" height="{box.height:g}" rx="3"/>'
        )
        if box.label:
            yield f'<text class="label" x="6" y="15">{escaped(box.label)}</text>'
        for one in box.inside:
            yield from _boxes(one, place, cpus)
    yield "</g>"
