"""Draws a machine with its containers, as one SVG or HTML file."""

from __future__ import annotations

import colorsys
import html
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from nri_resmgr.scenario.estimates import CPU
from nri_resmgr.scenario.findings import (
    Findings,
    PlacedContainer,
    group_placements,
    group_refusals,
)
from nri_resmgr.scenario.floorplan import TILE, Box, floor_plan
from nri_resmgr.scenario.node import RefusedRequest
from nri_resmgr.scenario.replicas import Group
from nri_resmgr.values import CpuSet, format_cpus
from nri_resmgr.values.counts import count_text

_LINE: Final = 20  # of the legend
_LEGEND_WIDTH: Final = 640
_MARGIN: Final = 12
_MOST_STRIPES: Final = 4  # more would not be distinguishable
_GOLDEN: Final = 0.618034  # of the circle of hues: neighbours are far apart

# Replicas with equal results have one colour, and one line.
_Placed: TypeAlias = Group[PlacedContainer]
# The containers of each CPU, with their colours.
_ContainersByCpu: TypeAlias = dict[int, list[tuple[_Placed, str]]]

# Greys that are readable on white and black; other colours follow the preference.
_STYLE: Final = """
svg { font: 12px sans-serif; background: #fff; color: #222 }
rect { fill: none; stroke: #888 }
text { fill: currentColor }
.free { fill: #eee } .fill { stroke: none } .exclusive { stroke: #000; stroke-width: 2 }
.id { fill: #111; font-size: 10px; text-anchor: middle }
.core, .group { stroke: none } .refused { fill: #c33 }
@media (prefers-color-scheme: dark) {
  svg { background: #161616; color: #ddd }
  .free { fill: #666 } .exclusive { stroke: #fff }
  .refused { fill: #f77 }
}
"""


def picture_svg(found: Findings) -> str:
    """Draw the machine, its CPUs in the colours of their containers, and a legend."""
    plan, placed = floor_plan(found.machine), group_placements(found.placements)
    legend = list(_legend(placed, group_refusals(found.refusals)))
    width = max(plan.width, _LEGEND_WIDTH) + 2 * _MARGIN
    height = plan.height + 3 * _MARGIN + _LINE * len(legend)
    rows = (
        f'<g transform="translate({_MARGIN} '
        f'{plan.height + 2 * _MARGIN + _LINE * number:g})">{row}</g>'
        for number, row in enumerate(legend)
    )
    number = count_text(len(found.placements), "container")
    size = f'width="{width:g}" height="{height:g}"'
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}',
        f'viewBox="0 0 {width:g} {height:g}">',
        f"<title>{_text(found.kind)}: {number}</title>",
        f"<style>{_STYLE}</style>",
        f'<g transform="translate({_MARGIN} {_MARGIN})">',
        *_boxes(plan, _by_cpu(placed, found.machine.online)),
        "</g>",
        *rows,
        "</svg>",
    )
    return "\n".join(parts) + "\n"


def picture_html(found: Findings) -> str:
    """Draw the picture as an HTML page."""
    return (
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml">\n'
        '<head><meta charset="utf-8"/>'
        '<meta name="color-scheme" content="light dark"/>'
        f"<title>{_text(found.kind)}</title></head>\n<body>\n"
        f"{picture_svg(found)}</body>\n</html>\n"
    )


def _by_cpu(placed: Sequence[_Placed], online: CpuSet) -> _ContainersByCpu:
    found: _ContainersByCpu = {}
    for number, one in enumerate(placed):
        # One that is not pinned runs anywhere, also beside exclusive ones.
        for cpu in one.first.cpus or online:
            found.setdefault(cpu, []).append((one, colour_of(number)))
    return found


def colour_of(number: int) -> str:
    """Return the colour of the containers of a line of the legend by its number."""
    hue, light = number * _GOLDEN % 1, 0.62 + 0.1 * (number % 2)
    red, green, blue = colorsys.hls_to_rgb(hue, light, 0.6)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _boxes(box: Box, containers: _ContainersByCpu) -> Iterator[str]:
    yield f'<g transform="translate({box.x:g} {box.y:g})">'
    if box.kind == "cpu":
        yield from _cpu(int(box.label), containers.get(int(box.label), []))
    else:
        yield (
            f'<rect class="{box.kind}" width="{box.width:g}" '
            f'height="{box.height:g}" rx="3"/>'
        )
        if box.label:
            yield f'<text x="6" y="15">{_text(box.label)}</text>'
        for one in box.inside:
            yield from _boxes(one, containers)
    yield "</g>"


def _cpu(number: int, here: list[tuple[_Placed, str]]) -> Iterator[str]:
    names = ", ".join(one.title for one, _ in here) or "free"
    exclusive = any(number in one.first.exclusive for one, _ in here)
    yield f'<g id="cpu{number}"><title>CPU {number}: {_text(names)}</title>'
    stripes = here[:_MOST_STRIPES]
    for place, (_, colour) in enumerate(stripes):
        width = TILE / len(stripes)
        yield (
            f'<rect class="fill" x="{place * width:g}" width="{width:g}" '
            f'height="{TILE}" style="fill: {colour}"/>'
        )
    kind = "exclusive" if exclusive else "shared" if here else "free"
    yield f'<rect class="{kind}" width="{TILE}" height="{TILE}"/>'
    yield f'<text class="id" x="{TILE / 2:g}" y="{TILE / 2 + 4:g}">{number}</text></g>'


def _legend(
    placed: Sequence[_Placed], refused: Sequence[Group[RefusedRequest]]
) -> Iterator[str]:
    for number, one in enumerate(placed):
        colour, words = colour_of(number), _words(one)
        yield (
            f'<rect class="fill" y="-11" width="14" height="14" '
            f'style="fill: {colour}"/><text x="22">{_text(words)}</text>'
        )
    for refusal in refused:
        words = f"refused: {refusal.title}"
        why = f"<title>{_text(refusal.first.why)}</title>"
        yield f'<text class="refused" x="22">{why}{_text(words)}</text>'


def _words(group: _Placed) -> str:
    one = group.first
    mark = "~" if CPU in (each.amount for each in one.estimates) else ""
    asks = f"{mark}{format_cpus(one.request)}" if one.request else "nothing"
    where = f"CPUs {one.cpus or 'any'}, memory {one.mems or 'any'}"
    return f"{group.title}  ({one.qos.value}, asks for {asks}): {where}"


def _text(words: str) -> str:
    # XML cannot represent unprintable characters.
    return html.escape("".join(one for one in words if one.isprintable()))
