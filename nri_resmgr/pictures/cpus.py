"""The CPUs of a plan: filled in the colours of their holders, and marked."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from nri_resmgr.pictures.floorplan import TILE
from nri_resmgr.pictures.text import escaped
from nri_resmgr.pictures.values import Holder, Picture, Plan
from nri_resmgr.values import CpuSet

_GOLDEN: Final = 0.618034  # of the circle of hues: neighbours are far apart
_ASIDE: Final = "#aaaaaa"
_OUTLINE: Final = 1  # pixels around a CPU; a core leaves two between its threads

Together: TypeAlias = tuple[int, ...]
"""The holders of a CPU, by their places."""

MARKS: Final[Mapping[str, str]] = {"reserved": "r", "isolated": "i"}
"""Letters on CPUs, as in ``top``."""


def colour_of(number: int) -> str:
    """Return the colour of a holder by its place.

    All are light enough for black letters, and differ from black and white grounds.
    """
    hue, light = number * _GOLDEN % 1, 0.62 + 0.1 * (number % 2)
    red, green, blue = colorsys.hls_to_rgb(hue, light, 0.6)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


class Cpus:
    """Draws the CPUs of all plans of a picture.

    CPUs with the same holders are filled by one definition, with a stripe for each
    holder, however many these are.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._holders = [
            _by_cpu(picture.holders, place, plan.machine.online)
            for place, plan in enumerate(picture.plans)
        ]
        mixes = (found for plan in self._holders for found in plan.values())
        self._mixes = {one: n for n, one in enumerate(dict.fromkeys(mixes))}

    def definitions(self) -> Iterator[str]:
        """Yield the stripes of each set of holders of some CPU."""
        for mix, number in self._mixes.items():
            # Neighbours that are grey are one stripe, which has no seams.
            runs = [
                (colour, len(list(same)))
                for colour, same in groupby(map(self.colour, mix))
            ]
            width, x, stripes = TILE / len(mix), 0.0, []
            for colour, count in runs:
                stripes.append(
                    f'<rect class="fill" x="{x:g}" width="{count * width:g}" '
                    f'height="{TILE}" style="fill: {colour}"/>'
                )
                x += count * width
            yield f'<g id="mix{number}">{"".join(stripes)}</g>'

    def colour(self, holder: int) -> str:
        """Return the colour of a holder by its place."""
        is_aside = self._picture.holders[holder].is_aside
        return _ASIDE if is_aside else colour_of(holder)

    def shared(self) -> Iterator[tuple[int, CpuSet, str, Together]]:
        """Yield the CPUs of each set of several holders, plan by plan.

        These are the place of the plan, the CPUs, the name of their fill, and the
        holders; sets of which none is in the legend are left out.
        """
        holders = self._picture.holders
        for place, found in enumerate(self._holders):
            cpus: dict[Together, list[int]] = {}
            for cpu, mix in found.items():
                cpus.setdefault(mix, []).append(cpu)
            for mix, numbers in cpus.items():
                if len(mix) > 1 and not all(holders[one].is_aside for one in mix):
                    fill = f"#mix{self._mixes[mix]}"
                    yield place, CpuSet.from_iterable(numbers), fill, mix

    def classes(self, place: int, cpu: int) -> list[str]:
        """Return the classes of a CPU on a plan; the first one names its holder."""
        plan, here = self._picture.plans[place], self._here(place, cpu)
        holders = (self._picture.holders[one] for one in here)
        exclusive = any(cpu in one.held[place].exclusive for one in holders)
        found = ["exclusive" if exclusive else "shared" if here else "free"]
        return found + [name for name, cpus in _marked(plan) if cpu in cpus]

    def draw(self, place: int, cpu: int) -> Iterator[str]:
        """Yield the CPU of a plan: its fill, its frame, its number and its marks."""
        classes, here = self.classes(place, cpu), self._here(place, cpu)
        names = ", ".join(self._picture.holders[one].title for one in here) or "free"
        marks = "".join(f", {one}" for one in classes if one in MARKS)
        heading = self._picture.plans[place].heading
        yield (
            f'<g id="{f"{heading}-" if heading else ""}cpu{cpu}" '
            f'class="{" ".join(classes)}">'
            f"<title>CPU {cpu}{marks}: {escaped(names)}</title>"
        )
        if here:
            yield f'<use href="#mix{self._mixes[here]}"/>'
        yield tile(classes)
        yield f'<text class="id" x="{TILE / 2:g}" y="{TILE / 2 + 4:g}">{cpu}</text></g>'

    def _here(self, place: int, cpu: int) -> Together:
        return self._holders[place].get(cpu, ())


def tile(classes: Sequence[str]) -> str:
    """Draw the frame of a CPU, the outline of a chosen one, and letters of marks."""
    parts = [f'<rect class="frame" width="{TILE}" height="{TILE}"/>']
    if "chosen" in classes:
        side = TILE + 2 * _OUTLINE
        parts.append(
            f'<rect class="outline" x="{-_OUTLINE}" y="{-_OUTLINE}" '
            f'width="{side}" height="{side}"/>'
        )
    letters = "".join(MARKS[one] for one in classes if one in MARKS)
    if letters:
        parts.append(f'<text class="mark" x="2" y="8">{letters}</text>')
    return "".join(parts)


def _marked(plan: Plan) -> tuple[tuple[str, CpuSet], ...]:
    return (
        ("reserved", plan.reserved),
        ("isolated", plan.machine.isolated),
        ("chosen", plan.chosen),
    )


def _by_cpu(
    holders: Sequence[Holder], place: int, online: CpuSet
) -> Mapping[int, Together]:
    found: dict[int, list[int]] = {}
    for number, holder in enumerate(holders):
        for cpu in holder.held[place].cpus & online:
            found.setdefault(cpu, []).append(number)
    return {cpu: tuple(here) for cpu, here in found.items()}
