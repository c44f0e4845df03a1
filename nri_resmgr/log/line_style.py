"""The form of log lines, which can be changed at any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


class LineStyle:
    """The parts of each line.

    Attributes:
        source: Whether lines have the field ``component``.
        headers: Whether lines of text begin with their time and level.
        context: Fields of each line, such as the node that is simulated.
    """

    def __init__(self) -> None:
        self.source = False
        self.headers = True
        self.context: Mapping[str, object] = {}


line_style: Final = LineStyle()
"""The style of this process."""
