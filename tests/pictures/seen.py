"""What a reader sees in a picture: parsed from its text, by meaning."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs

from nri_resmgr.values import CpuSet

_SVG: Final = "{http://www.w3.org/2000/svg}"
_COLOUR: Final = re.compile(r"fill: (#[0-9a-f]{6})")
_MOVED: Final = re.compile(r"translate\((\S+) (\S+)\)")
_LETTER: Final = 7.3  # pixels of a monospaced letter of 12


@attrs.frozen
class SeenCpu:
    """A CPU: what a pointer shows, its classes, and the colours that fill it."""

    title: str
    classes: frozenset[str]
    colours: tuple[str, ...]
    marks: str


@attrs.frozen
class SeenLine:
    """A line of text: its class, the whole text, and the colours beside it."""

    kind: str
    words: str
    colours: tuple[str, ...]


@attrs.frozen
class Seen:
    """A picture."""

    width: float
    title: str
    cpus: Mapping[str, SeenCpu]
    lines: tuple[SeenLine, ...]
    rightmost: float

    def words(self, kind: str) -> list[str]:
        """Return the texts of a class."""
        return [one.words for one in self.lines if one.kind == kind]

    def colour_of(self, title: str) -> str:
        """Return the colour of the holder whose line begins with a title."""
        (found,) = (
            one.colours
            for one in self.lines
            if one.kind == "holder" and one.words.startswith(f"{title}  ")
        )
        (colour,) = found
        return colour

    def cpus_in(self, colour: str, plan: str = "cpu") -> CpuSet:
        """Return the CPUs of a plan that a colour fills, wholly or in part."""
        return self._chosen(plan, lambda one: colour in one.colours)

    def cpus_with(self, name: str, plan: str = "cpu") -> CpuSet:
        """Return the CPUs of a plan with a class."""
        return self._chosen(plan, lambda one: name in one.classes)

    def _chosen(self, plan: str, wanted: Callable[[SeenCpu], bool]) -> CpuSet:
        return CpuSet.from_iterable(
            int(key.removeprefix(plan))
            for key, one in self.cpus.items()
            if key.removeprefix(plan).isdigit() and wanted(one)
        )


def seen(picture: str) -> Seen:
    """Read a picture, or the page that has it."""
    root = ET.fromstring(picture)  # noqa: S314 - our own text
    svg = root if root.tag == f"{_SVG}svg" else next(root.iter(f"{_SVG}svg"))
    fills = {
        f"#{one.get('id')}": tuple(_colours(one, {}))
        for one in svg.iter(f"{_SVG}g")
        if (one.get("id") or "").startswith("mix")
    }
    groups = [one for one in svg.iter(f"{_SVG}g") if "cpu" in (one.get("id") or "")]
    return Seen(
        width=float(svg.get("width", "0")),
        title=svg.findtext(f"{_SVG}title", ""),
        cpus={one.get("id", ""): _cpu(one, fills) for one in groups},
        lines=tuple(
            SeenLine(text.get("class", ""), _words(text), tuple(_colours(row, fills)))
            for row in svg.iter(f"{_SVG}g")
            for text in row.findall(f"{_SVG}text")
        ),
        rightmost=max(_ends(svg, 0), default=0),
    )


def _cpu(group: ET.Element, fills: Mapping[str, tuple[str, ...]]) -> SeenCpu:
    (mark,) = [
        one.text or ""
        for one in group.findall(f"{_SVG}text")
        if one.get("class") == "mark"
    ] or [""]
    return SeenCpu(
        title=group.findtext(f"{_SVG}title", ""),
        classes=frozenset((group.get("class") or "").split()),
        colours=tuple(_colours(group, fills)),
        marks=mark,
    )


def _colours(group: ET.Element, fills: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for one in group:
        if one.tag == f"{_SVG}use":
            yield from fills[one.get("href", "")]
        elif found := _COLOUR.search(one.get("style", "")):
            yield found[1]


def _words(text: ET.Element) -> str:
    spans = text.findall(f"{_SVG}tspan")
    return "".join(one.text or "" for one in spans) or text.text or ""


def _ends(element: ET.Element, x: float) -> Iterator[float]:
    """Yield where rectangles and texts end, from the left."""
    if found := _MOVED.search(element.get("transform", "")):
        x += float(found[1])
    tag = element.tag.removeprefix(_SVG)
    own = float(element.get("x", "0"))
    if tag == "rect":
        yield x + own + float(element.get("width", "0"))
    if tag == "tspan":
        yield x + own + len((element.text or "").rstrip()) * _LETTER
    if tag != "defs":
        for one in element:
            yield from _ends(one, x)
