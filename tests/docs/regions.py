"""Regions of a page between markers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

Generator: TypeAlias = Callable[[str], str]
"""From what stands in a region to what should."""

_REGION: Final = (
    r"(?P<begin><!-- {marker}: (?P<name>[^\n]+) -->\n)"
    r"(?P<body>.*?)(?P<end><!-- end -->)"
)


class UnknownRegion(LookupError):
    """A page has a region that no generator writes."""


def regions(text: str, marker: str = "generated") -> dict[str, str]:
    """Return the text of each region of a page, by name.

    Args:
        text: The page.
        marker: The word before the name.
    """
    return {found["name"]: found["body"] for found in _pattern(marker).finditer(text)}


def rewritten(
    text: str, generators: Mapping[str, Generator], marker: str = "generated"
) -> str:
    """Return a page with every region as its generator writes it.

    Args:
        text: The page.
        generators: By the names of regions.
        marker: The word before the name; regions of another word are left as they are.

    Raises:
        UnknownRegion: A region is not in *generators*.
    """

    def replace(found: re.Match[str]) -> str:
        if (name := found["name"]) not in generators:
            raise UnknownRegion(name)
        body = generators[name](found["body"]).strip("\n")
        return f"{found['begin']}\n{body}\n\n{found['end']}"

    return _pattern(marker).sub(replace, text)


def _pattern(marker: str) -> re.Pattern[str]:
    return re.compile(_REGION.format(marker=marker), re.DOTALL)
